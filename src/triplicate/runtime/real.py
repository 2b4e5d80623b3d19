"""The ports on the operating system."""

from __future__ import annotations

import asyncio
import os
import queue
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from triplicate.errors import HandleClosed
from triplicate.runtime.handshake_gate import HandshakeGate
from triplicate.runtime.oneshot import fail, resolve
from triplicate.runtime.ports import Host, Listener, Timer, Trace
from triplicate.runtime.real_disk import RealDisk

Result = TypeVar("Result")

BACKLOG = 4096
"""Limit of the connections that wait to be accepted; the system may have a lower one. All clients of a node may come at once."""
ACCEPTED_AT_ONCE = 64
"""Connections that asyncio accepts in one turn of the loop. It is asyncio's own meaning of a backlog."""
STEP_ASIDE_S = 0.00005
"""Long enough for a thread that waits for the interpreter's lock to wake up and acquire it."""
SHUTDOWN_LIMIT_S = 5.0
"""Limit of the wait for a peer's end of TLS, in seconds, after which a closed connection is aborted."""
QUEUED_MAXIMUM = 100_000
"""Limit of the functions in the queue of one worker, far above the number that callers queue if they wait for their results."""


def real_host(name: str, *, seed: int | None = None, trace: Trace | None = None) -> Host:
    """The ports for the running loop.

    Args:
        name: the node's name; part of its random streams.
        seed: repeats the random streams; drawn from the operating system when missing.
        trace: called with the kind and the facts of each event; by default they are dropped.
    """
    loop = asyncio.get_running_loop()
    clock = RealClock(loop)
    return Host(
        name=name,
        clock=clock,
        network=RealNetwork(loop),
        disk=RealDisk(),
        entropy=RealEntropy(name, seed),
        trace=trace if trace is not None else no_trace,
        new_worker=lambda worker_name: RealWorker(f"{name}/{worker_name}", loop),
        step_aside=step_aside,
    )


def step_aside() -> None:
    """See `Host.step_aside`.

    A thread that only computes keeps the interpreter's lock for 5 ms (`sys.getswitchinterval`) while others wait. An append needs the lock
    four times, on the loop and in the journal's thread, and would wait four times.
    """
    time.sleep(STEP_ASIDE_S)


_ELAPSED_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""On macOS CLOCK_MONOTONIC counts suspended time; where neither does, see docs/sql.md on leases."""


class RealClock:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        return self._loop.time()

    def elapsed(self) -> float:
        return time.clock_gettime(_ELAPSED_CLOCK)

    def wall_us(self) -> int:
        return time.time_ns() // 1000

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> Timer:
        return self._loop.call_at(when, callback, *args)


async def addresses_of(host: str) -> tuple[str, ...]:
    """The addresses of a host name, as this machine resolves it; none if it has none. An address is its own."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


class RealNetwork:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def connect(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> tuple[asyncio.Transport, asyncio.Protocol]:
        error: OSError | None = None
        for family, kind, number, _, address in await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            connecting = socket.socket(family, kind, number)
            try:
                connecting.setblocking(False)
                _set_options(connecting)
                await self._loop.sock_connect(connecting, address)
                if connecting.getsockname() == connecting.getpeername():
                    # TCP may connect a socket to itself if the port is in the ephemeral range and has no listener.
                    raise ConnectionRefusedError(f"no process listens on {host} port {port}")
                transport, protocol = await self._loop.create_connection(factory, sock=connecting)
            except OSError as problem:
                connecting.close()
                error = error or problem
            except BaseException:
                connecting.close()
                raise
            else:
                return transport, protocol
        raise error or OSError(f"no address for {host}")

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        found = await self._loop.getaddrinfo(host or "127.0.0.1", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, number, _, address = found[0]
        listening = socket.socket(family, kind, number)
        try:
            listening.setblocking(False)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _set_options(listening)  # Accepted sockets inherit them on Linux.
            listening.bind(address)
            real_address = listening.getsockname()
            server = await self._loop.create_server(factory, sock=listening, backlog=ACCEPTED_AT_ONCE)
            listening.listen(BACKLOG)
        except BaseException:
            listening.close()
            raise
        return RealListener(self._loop, server, (real_address[0], real_address[1]))

    async def start_tls(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.Protocol,
        context: ssl.SSLContext,
        *,
        limit_s: float,
        server_name: str | None,
        received: bytes = b"",
    ) -> asyncio.Transport:
        _check_open(transport)
        gate = HandshakeGate(protocol, transport)
        if received:
            # This comes before `connection_made` of the TLS protocol, which asyncio and uvloop call in the same turn of the loop.
            self._loop.call_soon(_feed, transport, received)
        try:
            protected = await self._loop.start_tls(
                transport,
                gate,
                context,
                server_side=server_name is None,
                server_hostname=server_name,
                ssl_handshake_timeout=limit_s,
                ssl_shutdown_timeout=SHUTDOWN_LIMIT_S,
            )
        except BaseException:
            transport.abort()
            raise
        if protected is None or transport.is_closing():
            # uvloop hands out a transport even where either side has closed the connection, and never calls `connection_lost`.
            raise ConnectionResetError("the connection was closed during the TLS handshake")
        gate.release(protected, self._loop)
        return protected


def _check_open(transport: asyncio.Transport) -> None:
    """Raises ConnectionResetError: the connection has ended. In uvloop a handshake over it has no end, not even at its limit."""
    if transport.is_closing():
        raise ConnectionResetError("the connection was closed before the TLS handshake")


def _feed(transport: asyncio.Transport, received: bytes) -> None:
    """Give the protocol of TLS bytes as if they were received now."""
    protocol = cast("asyncio.BufferedProtocol", transport.get_protocol())
    while received and not transport.is_closing():
        buffer = memoryview(protocol.get_buffer(len(received)))
        size_bytes = min(len(buffer), len(received))
        buffer[:size_bytes] = received[:size_bytes]
        protocol.buffer_updated(size_bytes)
        received = received[size_bytes:]


def _set_options(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class RealListener:
    def __init__(self, loop: asyncio.AbstractEventLoop, server: asyncio.Server, address: tuple[str, int]) -> None:
        self._loop = loop
        self._server = server
        self._address = address

    @property
    def address(self) -> tuple[str, int]:
        return self._address

    async def close(self) -> None:
        """Accept no further connection. Each connection accepted before has been made known to its protocol on return."""
        try:
            # asyncio (3.11) gives an accepted connection its transport a turn of the loop later, and leaks it if the server is closed then.
            for listening in self._server.sockets:
                self._loop.remove_reader(listening.fileno())
            await asyncio.sleep(0)
        finally:
            self._server.close()
        # Not `wait_closed`, which may wait for the accepted connections too; one turn lets the loop close the socket.
        await asyncio.sleep(0)


class _RunningThread(NamedTuple):
    """A worker's thread, and the future that it resolves as its last act."""

    thread: threading.Thread
    ended: asyncio.Future[None]


class RealWorker:
    """One thread, started with the first function.

    Callers limit the queue by waiting for their results. Bookies and nodes call from a fixed number of tasks, or from one for each
    connection, and connections are limited; the SQLite driver queues one function for each call of a user. A cancelled wait leaves its
    function in the queue, so `run` asserts `QUEUED_MAXIMUM`.
    """

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._name = name
        self._loop = loop
        self._work: queue.SimpleQueue[tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._running: _RunningThread | None = None
        """None before the first function."""
        self._closed = False

    def run(self, function: Callable[..., Result], *args: Any, answer: asyncio.Future[Result] | None = None) -> asyncio.Future[Result]:
        if self._closed:
            raise HandleClosed(f"worker {self._name} is closed")
        if self._running is None:
            ended: asyncio.Future[None] = self._loop.create_future()
            thread = threading.Thread(target=self._serve, args=(ended,), name=self._name, daemon=True)
            self._running = _RunningThread(thread, ended)
            thread.start()
        if answer is None:
            answer = self._loop.create_future()
        assert self._work.qsize() < QUEUED_MAXIMUM, f"worker {self._name}: {QUEUED_MAXIMUM} functions are queued, so a caller does not wait"
        self._work.put((answer, function, args))
        return answer

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._work.put(None)
        if self._running is not None:
            await asyncio.shield(self._running.ended)
            # The thread has just reported its end and terminates within microseconds, so none is left when `close` returns.
            self._running.thread.join()

    def _serve(self, ended: asyncio.Future[None]) -> None:
        while (task := self._work.get()) is not None:
            answer, function, args = task
            result: Any = None
            error: BaseException | None = None
            try:
                result = function(*args)
            except BaseException as raised:  # noqa: BLE001 -- it is raised where the result is awaited
                error = raised
            self._call_loop(_complete, answer, result, error)
            del task, answer, function, args, result, error
        self._call_loop(resolve, ended, None)

    def _call_loop(self, function: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            return  # The loop is closed, so nothing waits.


def _complete(answer: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if error is None:
        resolve(answer, result)
    elif isinstance(error, StopIteration):
        fail(answer, RuntimeError("a worker's function raised StopIteration"), is_logged=True)
    else:
        fail(answer, error, is_logged=True)


class RealEntropy:
    """Streams by purpose. Repeated calls return the same stream, so that two users of one purpose never draw the same numbers."""

    def __init__(self, name: str, seed: int | None) -> None:
        self._name = name
        self._seed = seed if seed is not None else int.from_bytes(os.urandom(16), "big")
        self._streams: dict[str, random.Random] = {}

    def stream(self, purpose: str) -> random.Random:
        stream = self._streams.get(purpose)
        if stream is None:
            # A string seeds through SHA-512, so it does not depend on PYTHONHASHSEED.
            stream = self._streams[purpose] = random.Random(f"{self._seed}/{self._name}/{purpose}")
        return stream

    def secret(self, size: int) -> bytes:
        return os.urandom(size)


def no_trace(kind: str, /, **facts: object) -> None:
    """The default trace: does nothing."""
