"""A running demonstration as a test observes it: its progress, and every process that it has started."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.process.running import command, environment
from tests.waiting import wait_until

GONE_S = 10.0
"""Within this time after a SIGKILL nothing of a demonstration may be left."""


class Demonstration:
    """Started in a folder; killed at the end if it still runs.

    Processes are noted by what the system says of them (id and start), as the command line of some, like Spark's Python workers,
    does not name the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = (folder.parent / "demonstration.log").open("ab")
        self.process = subprocess.Popen(
            command("demo", "--dir", str(folder)), env=environment(), stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        self.seen: dict[int, psutil.Process] = {}

    def note(self) -> dict[int, psutil.Process]:
        """Record descendants and processes that name the folder; return all that were ever seen."""
        found = [*psutil.Process(self.process.pid).children(recursive=True), *processes_of(self.folder)]
        for one in found:
            self.seen.setdefault(one.pid, one)
        return self.seen

    def commands(self) -> list[str]:
        """The command lines of its present descendants."""
        lines = []
        for one in psutil.Process(self.process.pid).children(recursive=True):
            try:
                lines.append(" ".join(one.cmdline()))
            except psutil.Error:
                continue  # It ended meanwhile.
        return lines

    def has_worker(self) -> bool:
        """Whether Spark has started a Python worker, so a job runs."""
        return any("pyspark.daemon" in line for line in self.commands())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def left(self) -> list[str]:
        """Its processes that still run."""
        alive = {one.pid: one for one in [*self.seen.values(), *processes_of(self.folder)] if one.is_running()}
        lines = []
        for pid, one in alive.items():
            try:
                if one.status() != psutil.STATUS_ZOMBIE:
                    lines.append(f"{pid} {' '.join(one.cmdline())[:200]}")
            except psutil.NoSuchProcess:
                continue
        return lines

    def said(self) -> str:
        return (self.folder.parent / "demonstration.log").read_text(errors="replace")

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self._log.close()


def processes_of(folder: Path) -> list[psutil.Process]:
    """All processes that name the folder on their command line."""
    return [one for one in psutil.process_iter(["cmdline"]) if any(str(folder) in word for word in one.info["cmdline"] or [])]


@contextmanager
def demonstration(folder: Path) -> Iterator[Demonstration]:
    running = Demonstration(folder)
    try:
        yield running
    finally:
        running.close()


def kill_and_wait(running: Demonstration) -> None:
    """SIGKILL the demonstration alone; its other processes must notice and end by themselves."""
    running.note()
    running.kill()
    try:
        wait_until(lambda: running.left() == [], GONE_S, "nothing of the killed demonstration is left")
    except AssertionError:
        raise AssertionError(f"{GONE_S:.0f} s after the kill there are still: {running.left()}") from None
