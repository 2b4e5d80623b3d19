"""Five bookies on three hosts, each behind a proxy, and three database nodes; metadata in one file.

A host is a loopback address. A bookie listens on 127.0.1.N and is registered with the address of its host, where its proxy listens.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from benchmarks.histories.cluster import DatabaseNodes
from benchmarks.ledger.machine import resident_mib
from benchmarks.ledger.processes import START_LIMIT_S, CaseFailed, Driver, Process, free_port, wait_for_port
from benchmarks.soak.connections import count, read_tcp, targets_of
from benchmarks.soak.fault_proxy import FaultProxy, ProxyThread
from benchmarks.soak.log_load import TRASH_PERIOD_S
from benchmarks.soak.verdicts import ProcessSamples, Sample
from benchmarks.sql.servers import metric_sum
from triplicate.config import to_toml

MIB = 1 << 20
PROGRAM = (sys.executable, "-m", "triplicate.cli.main")
HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.1", "127.0.0.2")
"""The host of each place."""
NODES = 3
SMALL_DISK = 2
"""The place whose directories are on a file system of `SMALL_DISK_BYTES`, if one can be mounted."""
SMALL_DISK_BYTES = 256 * MIB
SAMPLE_S = 2.0
METRICS_LIMIT_S = 0.5
OBSERVED = 1
FILLING = "filling"
JOURNAL, LEDGERS = DIRECTORIES = ("journal", "ledgers")
"""Directories of a bookie in its folder."""
COMMAND_LIMIT_S = 240.0
BOOKIE_SETTINGS: Mapping[str, object] = {
    "journal_preallocate_bytes": 4 * MIB,
    "journal_file_bytes": 8 * MIB,
    "journal_spare_files": 1,
    "write_cache_bytes": 8 * MIB,
    "read_cache_bytes": 4 * MIB,
    "flush_interval_s": 5.0,
    "entry_log_bytes": 16 * MIB,
    "gc_interval_s": 15.0,
    "trash_period_s": 30.0,
    "compaction_interval_s": 60.0,
    "disk_check_interval_s": 1.0,
    "reserve_bytes": 8 * MIB,
    "recovery_adds_free_bytes": 16 * MIB,
}
"""Small caches and files, so that they fill, are finished and are deleted within minutes."""
FULL_OPTIONS = ("--disk-usage-warn-threshold", "0.01", "--disk-usage-low-water", "0.01", "--disk-usage-threshold", "0.01")
"""Options of a bookie whose guard finds every disk too full."""
AUTORECOVERY_SETTINGS: Mapping[str, object] = {"in_bookie": True, "lost_bookie_delay_s": 10, "bookies_check_interval_s": 60}
CLIENT_SETTINGS: Mapping[str, object] = {"trash_period_s": TRASH_PERIOD_S}
COPIED_BYTES = "replication_worker_NUM_BYTES_WRITTEN_total"
NODE_SETTINGS: Mapping[str, object] = {"snapshot_log_bytes": 2 * MIB, "snapshot_interval_s": 60.0}


@dataclass
class PlacedBookie:
    """The bookie at a place. After its disks are lost another one, with another id and port, is at the place."""

    place: int
    generation: int
    port: int
    metrics_port: int
    folder: Path
    proxy: FaultProxy
    process: Process

    @property
    def bookie_id(self) -> str:
        return name_of(self.place, self.generation)


def name_of(place: int, generation: int) -> str:
    return f"bookie-{place}" if generation == 1 else f"bookie-{place}-{generation}"


class SoakedCluster(DatabaseNodes):
    """See the module's text. Use it as a context manager; leaving it ends every process and unmounts the small disk.

    Args:
        folder: must be empty or missing.
        proxies: open the bookies' proxies.
    """

    def __init__(self, folder: Path, proxies: ProxyThread) -> None:
        self.folder = folder
        self._proxies = proxies
        folder.mkdir(parents=True, exist_ok=True)
        self.uri = f"sqlite://{folder / 'metadata.db'}"
        self.bookies: dict[int, PlacedBookie] = {}
        self.ports = {f"node-{number}": free_port() for number in range(1, NODES + 1)}
        self.nodes: dict[str, Process] = {}
        self._copied_bytes: dict[int, float] = {}
        """By process id: bytes copied by the daemon in a bookie, as last read."""
        self._started: list[Process] = []
        self._ended_here: set[int] = set()
        self.mounted = self._mount()
        self._sample_due_s = 0.0
        self._samples: dict[int, tuple[str, str, float, list[Sample]]] = {}

    def __enter__(self) -> SoakedCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in self._started:
            process.kill()
        if self.mounted:
            subprocess.run(["umount", str(self._small_disk)], check=False, timeout=START_LIMIT_S)

    # Start and end of processes.

    def start(self) -> None:
        """Make the cluster's metadata, and start every bookie and node.

        Raises:
            CaseFailed: a process does not serve in time.
        """
        self.command("cluster", "init", self.uri, with_uri=False)
        for place in range(1, len(HOSTS) + 1):
            self.place_bookie(place, 1)
        for name in self.ports:
            self.start_node(name)

    def place_bookie(self, place: int, generation: int) -> PlacedBookie:
        """Start a new bookie with empty directories at a place."""
        folder = (self._small_disk if place == SMALL_DISK else self.folder) / name_of(place, generation)
        port = free_port()
        proxy = self._proxies.add((HOSTS[place - 1], port), (f"127.0.1.{place}", port))
        bookie = {
            "bookie_id": name_of(place, generation),
            "host": f"127.0.1.{place}",
            "advertised_address": HOSTS[place - 1],
            "port": port,
            "journal_directories": (str(folder / JOURNAL),),
            "ledger_directories": (str(folder / LEDGERS),),
            **BOOKIE_SETTINGS,
        }
        folder.mkdir(parents=True)
        metrics_port = free_port()
        tables: dict[str, Mapping[str, object]] = {
            "bookie": bookie,
            "metadata": {"uri": self.uri},
            "client": CLIENT_SETTINGS,
            "process": {"metrics_port": metrics_port},
            "autorecovery": AUTORECOVERY_SETTINGS,
        }
        (folder / "bookie.toml").write_text(to_toml(tables, comment=name_of(place, generation)))
        process = self._start_bookie(place, generation, folder, port)
        self.bookies[place] = PlacedBookie(place, generation, port, metrics_port, folder, proxy, process)
        return self.bookies[place]

    def empty_disks(self, bookie: PlacedBookie) -> None:
        """Delete all files in the directories of a bookie that has ended."""
        for name in DIRECTORIES:
            shutil.rmtree(bookie.folder / name, ignore_errors=True)

    def try_replace(self, bookie: PlacedBookie) -> bool:
        """Begin a new incarnation of a bookie whose disks are empty; False if that is refused, such as while it is registered."""
        try:
            self.command("bookie", "format", "--replace", "--yes", "--config", str(bookie.folder / "bookie.toml"), with_uri=False)
        except CaseFailed:
            return False
        return True

    def restart_bookie(self, place: int, *options: str) -> None:
        """Start a bookie on its data."""
        bookie = self.bookies[place]
        bookie.process = self._start_bookie(place, bookie.generation, bookie.folder, bookie.port, *options)

    def _start_bookie(self, place: int, generation: int, folder: Path, port: int, *options: str) -> Process:
        name = name_of(place, generation)
        process = Process(name, [*PROGRAM, "bookie", "--config", str(folder / "bookie.toml"), *options], self.folder / f"{name}.log")
        self._observe(name, "bookie", process)
        wait_for_port(port, process, host=f"127.0.1.{place}")
        return process

    def start_node(self, name: str) -> None:
        """Start a database node, on its data if it ran before."""
        node = {"node_id": name, "host": "127.0.0.1", "port": self.ports[name], "directory": str(self.folder / name), **NODE_SETTINGS}
        config = self.folder / f"{name}.toml"
        config.write_text(to_toml({"node": node, "metadata": {"uri": self.uri}, "client": CLIENT_SETTINGS}, comment=name))
        self.nodes[name] = Process(name, [*PROGRAM, "node", "--config", str(config)], self.folder / f"{name}.log")
        self._observe(name, "node", self.nodes[name])
        wait_for_port(self.ports[name], self.nodes[name])

    def driver(self, name: str, module: str) -> Driver:
        """Start a client that reads commands."""
        driver = Driver(name, [sys.executable, "-m", module], self.folder / f"{name}.log")
        self._observe(name, name, driver)
        return driver

    def command(self, *arguments: str, with_uri: bool = True) -> str:
        """Run one of Triplicate's commands to its end, and return its standard output.

        Raises:
            CaseFailed: it failed. The message has its last line, and standard output if there is any.
        """
        command = [*PROGRAM, *arguments, *(["--metadata", self.uri] if with_uri else [])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise CaseFailed(f"{' '.join(arguments)}: exit code {done.returncode}: {said} {done.stdout[-500:]}".rstrip())
        return done.stdout

    def hosts(self) -> dict[str, str]:
        """The host of each bookie that is at a place now."""
        return {one.bookie_id: HOSTS[place - 1] for place, one in self.bookies.items()}

    def retire(self, bookie: PlacedBookie) -> None:
        """Give up a bookie that has ended: its proxy is closed and its files are deleted."""
        self._proxies.remove(bookie.proxy)
        shutil.rmtree(bookie.folder)

    def kill(self, process: Process) -> None:
        """End a process by SIGKILL."""
        self._ended_here.add(process.pid)
        process.kill()

    def terminate(self, process: Process) -> None:
        """End a process by SIGTERM."""
        self._ended_here.add(process.pid)
        process.stop()

    def ended_by_themselves(self) -> list[str]:
        """The processes that have ended without having been ended, with their last words."""
        return [
            f"{process.name} ended with {process.popen.returncode}: {process.last_words()}"
            for process in self._started
            if process.pid not in self._ended_here and not process.is_running
        ]

    # The small disk.

    @property
    def _small_disk(self) -> Path:
        return self.folder / "small-disk"

    def _mount(self) -> bool:
        self._small_disk.mkdir()
        options = ["-t", "tmpfs", "-o", f"size={SMALL_DISK_BYTES}", "tmpfs", str(self._small_disk)]
        with contextlib.suppress(OSError):
            return subprocess.run(["mount", *options], capture_output=True, check=False, timeout=START_LIMIT_S).returncode == 0
        return False

    def fill_small_disk(self) -> None:
        """Fill the mounted disk to its last byte."""
        with (self._small_disk / FILLING).open("wb", buffering=0) as file:
            block = bytes(MIB)
            while block:
                try:
                    file.write(block)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    block = block[: len(block) // 2]

    def free_small_disk(self) -> None:
        """Undo `fill_small_disk`."""
        (self._small_disk / FILLING).unlink(missing_ok=True)

    # Memory and descriptors.

    def _observe(self, name: str, kind: str, process: Process) -> None:
        self._started.append(process)
        self._samples[process.pid] = (f"{name} ({process.pid})", kind, time.monotonic(), [])

    def sample(self) -> None:
        """Record memory and descriptors of every process that runs, unless that was done a moment ago."""
        now = time.monotonic()
        if now < self._sample_due_s:
            return
        self._sample_due_s = now + SAMPLE_S
        table = read_tcp()
        for pid, (_, _, began, samples) in self._samples.items():
            mib = resident_mib(pid)
            if mib is not None:
                found = count(targets_of(pid), table)
                samples.append(Sample(now - began, mib, found))
        for bookie in self.bookies.values():
            with contextlib.suppress(OSError):
                url = f"http://127.0.0.1:{bookie.metrics_port}/metrics"
                text = urllib.request.urlopen(url, timeout=METRICS_LIMIT_S).read().decode()
                self._copied_bytes[bookie.process.pid] = metric_sum(text, COPIED_BYTES)

    @property
    def copied_bytes(self) -> float:
        """Bytes that the daemons in bookies have copied, as far as they were sampled before the end of their processes."""
        return sum(self._copied_bytes.values())

    def samples(self) -> list[ProcessSamples]:
        """All samples so far."""
        return [ProcessSamples(name, kind, tuple(samples)) for name, kind, _, samples in self._samples.values()]


@contextlib.contextmanager
def stopped(process: Process) -> Iterator[None]:
    """Stop a process by SIGSTOP, and continue it."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)
