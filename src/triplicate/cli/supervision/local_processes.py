"""A cluster of real processes on this machine: started together, ended together, and ended with the process that started them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

from triplicate.cli.process.port_holders import listening_sockets
from triplicate.cli.process.serving import run_loop
from triplicate.cli.supervision.cluster_folder import (
    ZOOKEEPER,
    ClusterFolder,
    ClusterMember,
    check_instance,
    locked,
    open_folder,
    refuse_foreign,
    write_json,
)
from triplicate.cli.supervision.port_conflicts import port_conflict
from triplicate.cli.supervision.zookeeper_process import check_kazoo, find_jars, find_java
from triplicate.errors import EnvironmentFault
from triplicate.metadata import MetadataAccess, open_cluster
from triplicate.runtime import real_host

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
ORPHANS_TIMEOUT_S = 10.0
LAST_WORDS_BYTES = 64 * 1024
"""Size of the end of a log that is searched for the reason of a failure."""


@dataclass
class RunningProcess:
    """A process that was started."""

    member: ClusterMember
    process: subprocess.Popen[bytes]
    facts: dict[str, object] = field(default_factory=dict)


class LocalCluster:
    """Starts and ends the processes of a folder. Use it as a context manager; leaving it ends every process.

    Every child inherits the read end of a pipe whose write end only this process holds. When this process ends in any way, the pipe closes,
    and the children end.
    """

    def __init__(self, folder: ClusterFolder) -> None:
        self.folder = folder
        self._running: dict[str, RunningProcess] = {}
        self._launched: dict[str, int] = {}
        """By name: the read end of the pipe on which a launched process reports that it serves."""
        self._pipe_read, self._pipe_write = os.pipe()

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def running(self) -> dict[str, RunningProcess]:
        """Processes by name, including those that ended by themselves and were not restarted."""
        return self._running

    def start(self, *names: str) -> None:
        """Start processes and wait until each serves. Without names, start all that do not run; it is enough then that one of each kind
        serves: `ended` and `newly_ready` return the others.

        Raises:
            EnvironmentFault: a process ended before it served, or is late. The message has its last line.
        """
        members = [self.folder.member(name) for name in names] or [one for one in self.folder.members if one.name not in self._running]
        waiting: dict[int, RunningProcess] = {}
        try:
            for member in members:
                ready, running = self._spawn(member)
                waiting[ready] = running
                self._running[member.name] = running
            self._write_processes()
            problems = self._await_ready(waiting)
            kinds = {one.member.kind for one in self._running.values() if one.facts}
            for name, problem in problems.items():
                if names or self._running[name].member.kind not in kinds:
                    raise EnvironmentFault(problem)
            for ready, one in list(waiting.items()):
                if not one.facts:
                    self._launched[one.member.name] = ready
                    del waiting[ready]
        finally:
            for ready in waiting:
                os.close(ready)

    def launch(self, name: str) -> None:
        """Start one process without waiting. `newly_ready` returns it when it serves, `ended` when it has ended.

        Raises:
            EnvironmentFault: another process holds one of its ports. OSError: the process cannot be started.
        """
        member = self.folder.member(name)
        conflict = port_conflict(self.folder, member)
        if conflict is not None:
            raise EnvironmentFault(conflict)
        self._launched[name], self._running[name] = self._spawn(member)
        self._save_processes()

    def newly_ready(self) -> list[RunningProcess]:
        """Launched processes that have reported since the last call that they serve."""
        found = []
        for name, ready in list(self._launched.items()):
            if select.select([ready], [], [], 0)[0]:
                line = _read_line(ready)
                self._forget_launch(name)
                if line:  # An empty line means that the process has ended or is ending.
                    self._running[name].facts = json.loads(line)
                    found.append(self._running[name])
        return found

    def _forget_launch(self, name: str) -> None:
        ready = self._launched.pop(name, None)
        if ready is not None:
            os.close(ready)

    def hang_up(self) -> None:
        """Send SIGHUP to every process that serves. One that starts may not have its handler yet."""
        for one in self._running.values():
            if one.facts and one.process.poll() is None:
                one.process.send_signal(signal.SIGHUP)

    def kill(self, name: str) -> None:
        """Send SIGKILL to one process and wait for its end."""
        self.send(name, signal.SIGKILL)
        self._running[name].process.wait()

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a signal to one process."""
        self._running[name].process.send_signal(number)

    def ended(self) -> list[RunningProcess]:
        """Processes that have ended. Each is returned once."""
        gone = [one for one in self._running.values() if one.process.poll() is not None]
        for one in gone:
            del self._running[one.member.name]
            self._forget_launch(one.member.name)
        if gone:
            self._save_processes()
        return gone

    def close(self) -> None:
        """End every process in order: database nodes before the bookies that they write to, and the metadata store last. A process that
        does not end in time is killed."""
        for kind in ("node", "bookie", ZOOKEEPER):
            ending = [one.process for one in self._running.values() if one.member.kind == kind and one.process.poll() is None]
            for process in ending:
                process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + STOP_TIMEOUT_S
            for process in ending:
                try:
                    process.wait(max(0.1, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        self._running.clear()
        for name in list(self._launched):
            self._forget_launch(name)
        (self.folder.path / "processes.json").unlink(missing_ok=True)
        if self._pipe_write >= 0:
            os.close(self._pipe_read)
            os.close(self._pipe_write)
            self._pipe_write = -1

    def _spawn(self, member: ClusterMember) -> tuple[int, RunningProcess]:
        ready_read, ready_write = os.pipe()
        command = [sys.executable, "-m", "triplicate.cli.main", member.kind, "--config", str(self.folder.config_of(member))]
        command += ["--parent-pipe", str(self._pipe_read), "--ready-pipe", str(ready_write)]
        try:
            with open(self.folder.log_of(member), "ab") as log:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self.folder.environment_of_processes(os.environ),
                    pass_fds=(self._pipe_read, ready_write),
                    # A separate session: Ctrl-C at the terminal reaches only this process, which ends the others in order.
                    start_new_session=True,
                )
        except BaseException:
            os.close(ready_read)
            raise
        finally:
            os.close(ready_write)
        return ready_read, RunningProcess(member, process)

    def _await_ready(self, waiting: Mapping[int, RunningProcess]) -> dict[str, str]:
        """Wait until each process serves, has ended, or is late; returns the problem of each that does not serve, by name."""
        problems: dict[str, str] = {}
        deadline = time.monotonic() + START_TIMEOUT_S
        with selectors.DefaultSelector() as selector:
            for ready in waiting:
                selector.register(ready, selectors.EVENT_READ)
            while selector.get_map():
                events = selector.select(max(0.0, deadline - time.monotonic()))
                if not events:
                    for key in selector.get_map().values():
                        late = waiting[key.fd].member
                        problems[late.name] = (
                            f"{late.name} is not ready after {START_TIMEOUT_S:.0f} s (its log: {self.folder.log_of(late)})"
                        )
                    break
                for key, _ in events:
                    running = waiting[key.fd]
                    selector.unregister(key.fd)
                    line = _read_line(key.fd)
                    if line:
                        running.facts = json.loads(line)
                    else:
                        problems[running.member.name] = self.why_not_started(running.member)
        return problems

    def why_not_started(self, member: ClusterMember) -> str:
        """The reason why a process ended before it served, from the last line of its log."""
        log = self.folder.log_of(member)
        try:
            with open(log, "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_WORDS_BYTES))
                lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        except OSError as error:
            reason = f"its log cannot be read ({error.strerror})"
        else:
            reason = lines[-1].removeprefix("triplicate: ") if lines else "it wrote nothing"
        return f"{member.name} did not start: {reason} (its log: {log})"

    def _save_processes(self) -> None:
        try:
            self._write_processes()
        except OSError as error:
            # A full disk must not end the cluster. A process missing in the file still ends with the pipe.
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise

    def _write_processes(self) -> None:
        running = {name: one.process.pid for name, one in self._running.items()}
        started = {name: process_start(pid) for name, pid in running.items()}
        write_json(self.folder.path / "processes.json", {"up": os.getpid(), "processes": running, "started": started})


def _read_line(pipe: int) -> bytes:
    """The line in which a process reports that it serves; empty if it ended first. The line of a node with thousands of databases exceeds a
    pipe's buffer."""
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(pipe, 65536)
        if not more:
            return b""
        line += more
    return line


def process_start(pid: int) -> int | None:
    """The start time of a process in the system's ticks; None if it does not run or the system does not report it.

    Process ids are reused. The id and the start time together identify a process.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def wait_for_orphans(folder: Path) -> None:
    """After `up` was killed, wait until its processes have ended: they still hold their directories.

    Raises:
        EnvironmentFault: a process does not end.
    """
    try:
        content = json.loads((folder / "processes.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    deadline = time.monotonic() + ORPHANS_TIMEOUT_S
    for name, pid in content["processes"].items():
        while content["started"][name] is not None and process_start(pid) == content["started"][name]:
            if time.monotonic() > deadline:
                raise EnvironmentFault(f"{name} of an earlier `triplicate up` still runs (process {pid}); end it and try again")
            time.sleep(0.02)


def check_data(folder: ClusterFolder) -> None:
    """Raises EnvironmentFault: the metadata of a folder with data is missing."""
    if folder.instance_id and not folder.metadata_path.exists():
        raise EnvironmentFault(
            f"{folder.metadata_path} is missing, and without it no ledger can be found; put it back, or name a new --dir"
        )


def check_ports(folder: ClusterFolder) -> None:
    """Raises EnvironmentFault: a foreign process holds a port. The message has its id and the remedy."""
    listening = listening_sockets()
    for member in folder.members:
        conflict = port_conflict(folder, member, listening)
        if conflict is not None:
            raise EnvironmentFault(conflict)


def ensure_cluster(folder: ClusterFolder) -> ClusterFolder:
    """Create the cluster's metadata at the first start, and check that it is the same at every later start.

    Raises:
        WrongCluster: the metadata belongs to another cluster.
        EnvironmentFault: the metadata of a folder with data is missing.
    """
    check_data(folder)

    async def instance_id() -> str:
        host = real_host("up")
        access = MetadataAccess.of(*folder.client_settings(), host)
        cluster = await open_cluster(folder.metadata_uri, host, create=not folder.instance_id, access=access)
        try:
            return cluster.instance_id
        finally:
            await cluster.aclose()

    found = run_loop(instance_id())
    check_instance(folder, found)
    if folder.instance_id:
        return folder
    complete = replace(folder, instance_id=found)
    complete.save()
    return complete


@contextlib.contextmanager
def local_cluster(
    path: Path,
    *,
    bookies: int | None = None,
    nodes: int | None = None,
    metadata: str | None = None,
    secure: bool = False,
    resp: bool | None = None,
    begin: Callable[[ClusterFolder], None] | None = None,
) -> Iterator[LocalCluster]:
    """Lock the folder and start its processes; end them on exit.

    Args:
        path: the folder; created if missing.
        bookies, nodes, metadata, secure, resp: see `open_folder`.
        begin: called before the first bookie or node is started.

    Raises:
        ConfigError, EnvironmentFault, WrongCluster: each with one line that names the remedy.
    """
    path = path.absolute()
    refuse_foreign(path)
    if metadata == "zk":
        # Checked before anything is written into the folder.
        find_java()
        find_jars()
        check_kazoo()
    with locked(path):
        folder = open_folder(path, bookies=bookies, nodes=nodes, metadata=metadata, secure=secure, resp=resp)
        wait_for_orphans(path)
        folder.write_configs()
        folder.check_configs()
        if folder.zookeeper is None:
            folder = ensure_cluster(folder)
        check_ports(folder)
        with LocalCluster(folder) as cluster:
            if folder.zookeeper is not None:
                check_data(folder)
                if folder.is_secured:
                    folder.write_zookeeper_security(folder.zookeeper)  # The certificate may have been renewed.
                cluster.start(ZOOKEEPER)
                cluster.folder = folder = ensure_cluster(folder)
            if begin is not None:
                begin(folder)
            cluster.start()
            yield cluster
