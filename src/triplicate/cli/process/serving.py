"""The environment of a command: its event loop, the signals that end it, the pipe to its parent, and its log."""

from __future__ import annotations

import asyncio
import faulthandler
import json
import logging
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from triplicate.cli.process.audit_log import reopen_audit_log
from triplicate.cli.process.page_access import PageAddress, page_guard
from triplicate.cli.process.port_holders import reason_of
from triplicate.cli.process.probes import ProcessState, ServedProcess
from triplicate.cli.process.trace_levels import level_of
from triplicate.config import ProcessSettings, SecuritySettings
from triplicate.errors import ConfigError, EnvironmentFault
from triplicate.runtime import (
    Host,
    Listener,
    LoopWatch,
    Metrics,
    PageGuard,
    Probe,
    Trace,
    collect_garbage_seldom,
    first_of,
    real_host,
    resolve,
    serve_metrics,
)
from triplicate.security import expiring_files

Result = TypeVar("Result")

LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
OTHER_FILES = 200
"""Allowance for files other than connections: logs, a few databases and Python's own files."""
STDERR = 2
"""The file descriptor, which a handler of a signal can write to."""
ORPHAN_GRACE_S = 5.0
"""Time that an orphaned process has for an orderly end before it exits at once."""


def run_loop(coroutine: Coroutine[Any, Any, Result], *, debug: bool = False) -> Result:
    """Run a coroutine on uvloop if it is installed, else on asyncio's loop."""
    try:
        import uvloop
    except ImportError:
        factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory, debug=debug or None) as runner:
        return runner.run(coroutine)


def watch_parent(pipe: int | None) -> None:
    """End this process when the other end of an inherited pipe closes, which also happens when the parent is killed.

    A thread, because a blocked event loop must not keep an orphan alive.
    """
    if pipe is None:
        return

    def wait() -> None:
        # Nothing is written into the pipe: the read returns when the last holder of the other end is gone.
        while os.read(pipe, 1):
            continue
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_GRACE_S)
        os._exit(70)

    threading.Thread(target=wait, name="parent-watch", daemon=True).start()


def raise_open_files_limit() -> None:
    """Raise the soft limit of open files to the hard limit.

    A node opens seven files for each database. The usual soft limit, 1024, is for programs that call `select`, which no server does.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:
        # Without a hard limit, a system may refuse the value that means no limit.
        logging.getLogger("triplicate").warning("the limit of open files stays at %d: %s; raise it with ulimit -n", soft, error)


def warn_of_open_files(connections: int, setting: str) -> None:
    """Write a warning if this process may not have the files that its connections need.

    Args:
        connections: the limit of the connections. setting: its name.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < connections + OTHER_FILES:
        logging.getLogger("triplicate").warning(
            "the limit of open files is %d, and %s allows %d connections: raise it (ulimit -Hn) to %d or more, or lower %s",
            limit,
            setting,
            connections,
            connections + OTHER_FILES,
            setting,
        )


def report_ready(pipe: int | None, facts: dict[str, object]) -> None:
    """Report to the parent that this process serves, as one line of JSON."""
    if pipe is not None:
        os.write(pipe, json.dumps(facts).encode() + b"\n")
        os.close(pipe)


class UtcFormatter(logging.Formatter):
    """One line: the time in UTC as ISO 8601 with milliseconds and ``Z``, the level, the logger and the message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime


def configure_log(level: str) -> None:
    """Write log lines to standard error with time and level."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(UtcFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler])


class LogTrace:
    """The Trace port that writes facts as log lines, at the level that `trace_levels` has for the name."""

    def __init__(self) -> None:
        self._logger = logging.getLogger("triplicate")

    def __call__(self, kind: str, /, **facts: object) -> None:
        level = level_of(kind, facts)
        if self._logger.isEnabledFor(level):
            # A fact may contain text from a peer or the system: line breaks are escaped.
            text = "".join(f" {name}={value}" for name, value in facts.items()).replace("\n", "\\n").replace("\r", "\\r")
            self._logger.log(level, "%s%s", kind, text)


def outlive_hangup(on_hangup: Callable[[], None] | None = None) -> None:
    """Let SIGHUP, SIGUSR1 and SIGUSR2, which end a program by default, end nothing. Terminals that close and rotations of logs
    send them.

    Args:
        on_hangup: called at SIGHUP, on the main thread between two steps of the interpreter.
    """

    def handle(number: int, frame: object) -> None:
        if number == signal.SIGHUP and on_hangup is not None:
            on_hangup()

    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, handle)


def reload(trace: Trace) -> None:
    """The work of SIGHUP in a server: the audit log is opened again under its name. Certificates, users, tokens and keys are read again
    anyway when their files change, and other settings at the next start."""
    reopen_audit_log()
    trace("process.hangup", reopened="the audit log", read_at_the_next_start="settings")


async def until_signal() -> int:
    """Wait for SIGINT or SIGTERM; returns its number. A second signal is not caught: it ends the process at once."""
    loop = asyncio.get_running_loop()
    caught: asyncio.Future[int] = loop.create_future()

    def stop_waiting(number: int) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)
        resolve(caught, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop_waiting, number)
    return await caught


async def start_metrics(
    host: Host, metrics: Metrics, settings: ProcessSettings, probes: Mapping[str, Probe], guard: PageGuard | None = None
) -> Listener:
    """Serve the process's metrics and probes.

    Args:
        guard: see `page_guard`.

    Raises:
        EnvironmentFault: the port is in use, or the address is not usable.
    """
    try:
        return await serve_metrics(host, metrics, settings.metrics_port, settings.metrics_host, probes, guard)
    except OSError as error:
        where = place_of(settings.metrics_host, settings.metrics_port)
        reason = reason_of(error, settings.metrics_host, settings.metrics_port)
        raise EnvironmentFault(
            f"{where} cannot be opened for the metrics ({reason}); choose another process.metrics_port or process.metrics_host"
        ) from None


def show_expiry(metrics: Metrics, security: SecuritySettings) -> None:
    """Add a metric for each file with certificates of this process.

    Raises:
        ConfigError: a file cannot be read, or a package is missing.
    """
    files = list(expiring_files(security))
    if files:
        help_text = "Time at which the first certificate in this file expires, in seconds since the epoch."
        gauge = metrics.gauge("triplicate_certificate_expires_seconds", help_text, ("file",))
        for each in files:
            gauge.labels(each.path).set_function(each.expires_s)


def place_of(address: str, port: int) -> str:
    """``host:port``, an IPv6 address in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def metrics_url(address: str, port: int, *, tls: bool = False) -> str:
    """The URL at which processes on this machine read the metrics served on an address; wildcard addresses include loopback."""
    return f"{'https' if tls else 'http'}://{place_of(LOOPBACK.get(address, address), port)}/metrics"


Serve = Callable[[Host, Metrics], Awaitable[ServedProcess]]
"""Starts a server on a host, with a metrics registry."""


async def until_end(name: str, serving: ServedProcess) -> None:
    """Wait for a signal or a failure of the server.

    Raises:
        EnvironmentFault: the server failed.
    """

    async def failure() -> BaseException | int:
        return await serving.failed()

    async def signalled() -> BaseException | int:
        return await until_signal()

    _, what = await first_of([signalled(), failure()], name=f"{name} serves")
    if isinstance(what, BaseException):
        raise EnvironmentFault(f"{name} has failed and ends: {what}") from what


def serve_process(
    name: str,
    settings: ProcessSettings,
    start: Serve,
    *,
    security: SecuritySettings | None = None,
    parent_pipe: int | None,
    ready_pipe: int | None,
) -> None:
    """Run one server process until a signal or the end of its parent.

    Args:
        start: starts the server on the host with the metrics registry, both of this process.
        security: protects the pages; None for the defaults, without TLS.

    Raises:
        ConfigError: Python runs without assertions.
    """
    if not __debug__:
        # A broken invariant must stop a server before it acknowledges anything.
        raise ConfigError("servers keep their assertions: start Python without -O, and unset PYTHONOPTIMIZE")
    outlive_hangup()
    # Written by the signal's handler in C, so also while a thread holds the interpreter.
    faulthandler.register(signal.SIGUSR2, file=STDERR)
    configure_log(settings.log_level)
    raise_open_files_limit()
    collect_garbage_seldom()
    watch_parent(parent_pipe)

    def announce(facts: dict[str, object]) -> None:
        logging.getLogger("triplicate").info("%s serves%s", name, "".join(f" {key}={value}" for key, value in facts.items()))
        report_ready(ready_pipe, facts)

    async def body() -> None:
        await serve(name, real_host(name, trace=LogTrace()), settings, start, announce, security)

    run_loop(body(), debug=settings.debug)


async def serve(
    name: str,
    host: Host,
    settings: ProcessSettings,
    start: Serve,
    announce: Callable[[dict[str, object]], None],
    security: SecuritySettings | None = None,
) -> None:
    """Start a server and run it until a signal or its failure. Metrics and probes are served from before its start until after its end.

    Args:
        announce: called with the server's facts once it serves.
        security: protects the pages; None for the defaults, without TLS.

    Raises:
        ConfigError: the pages cannot be protected as the settings say.
        EnvironmentFault: the metrics' address cannot be opened, or the server failed. Also the errors of `start`.
    """
    # On the loop, not in a handler of the interpreter, which may interrupt anything.
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload, host.trace)
    metrics, security = Metrics(), security if security is not None else SecuritySettings()
    show_expiry(metrics, security)
    guard = page_guard(host, settings, security)
    watch = LoopWatch(host.trace, metrics)
    state = ProcessState(name, host.clock, lambda: watch.delay_s)
    listener = await start_metrics(host, metrics, settings, {"/health": state.health, "/ready": state.ready}, guard)
    pages = PageAddress.of(metrics_url(*listener.address, tls=settings.metrics_tls), settings, security)
    try:
        with watch:
            serving = await start(host, metrics)
            try:
                state.serving = serving
                announce({**serving.facts, **pages.facts()})
                await until_end(name, serving)
            finally:
                state.ending = True
                await serving.stop()
    finally:
        await listener.close()
