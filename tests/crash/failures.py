"""Disk failures during a workload: no space at any write, a failed sync at any sync. Every answer must still hold afterwards."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass

from tests.crash.caller import ConnectionClosed
from tests.crash.counts import Counts
from tests.crash.lives import Lives, settings_of
from tests.crash.medium import Medium, NameChange, Operation
from tests.crash.points import machine_of, nodes_at
from tests.crash.trial import Expected, ask_everything, try_start
from tests.crash.workload import run_workload, small_commits
from triplicate.bookie.journal.journal_files import PREPARED_NAME
from triplicate.errors import TriplicateError
from triplicate.sim.virtual_loop import SimulationStuck

FULL_S = 3.5
"""How long a disk stays full, in virtual time: longer than a flush waits before it is retried."""
PATIENCE_S = 120.0
TAKES_SPACE = ("create", "write", "allocate")


@dataclass(frozen=True, slots=True)
class FailedOperation:
    """An operation that was made to fail."""

    kind: str
    path: str
    place: int
    """Number of operations on record before it."""
    stopping: bool
    """Whether the bookie was stopping."""


class NthFails:
    """Makes the n-th operation of some kinds fail; with `lasting`, also all later ones for `FULL_S`."""

    def __init__(self, lives: Lives, kinds: tuple[str, ...], number: int, code: int, *, lasting: bool, path: str = "") -> None:
        self.seen = 0
        self._path = path
        self.failed: list[FailedOperation] = []
        """The operations that failed, the n-th first."""
        self._lives, self._kinds, self._number, self._code = lives, kinds, number, code
        self._until = -1.0
        self._lasting = lasting

    def __call__(self, kind: str, path: str, size: int) -> OSError | None:
        if kind not in self._kinds:
            return None
        now = self._lives.machine.loop.time()
        if path.startswith(self._path):
            self.seen += 1
        elif now >= self._until:
            return None
        first = self.seen == self._number and not self.failed
        if first:
            self._until = now + FULL_S
        if first or (self._lasting and now < self._until):
            bookie = self._lives.bookie
            self.failed.append(FailedOperation(kind, path, len(self._lives.machine.disk.record), bookie is not None and bookie.stopping))
            return OSError(self._code, os.strerror(self._code), path)
        return None

    @property
    def struck(self) -> str:
        """Description of the first failure; empty if there is none."""
        return f"{self.failed[0].kind} of {self.failed[0].path}" if self.failed else ""


def operations_of(directories: int, seed: int, kinds: tuple[str, ...], path: str = "") -> int:
    """Number of operations of these kinds, on matching paths, in a workload without failures."""
    lives = Lives(machine_of(settings_of(directories)), settings_of(directories))
    counter = NthFails(lives, kinds, 0, 0, lasting=False, path=path)
    lives.machine.disk.fault = counter
    with small_commits():
        lives.machine.run(run_workload(lives, seed))
    lives.kill()
    lives.machine.close()
    return counter.seen


def try_full_disks(directories: int, seed: int, step: int, first: int) -> Counts:
    """Fill the disk at every `step`-th write: for one operation, and for some seconds."""
    counts = Counts()
    for number in range(1 + first, operations_of(directories, seed, TAKES_SPACE) + 1, step):
        for lasting in (False, True):
            counts.tried["full disks"] += 1
            _try_failure(directories, seed, counts, TAKES_SPACE, number, errno.ENOSPC, lasting=lasting)
    return counts


def try_failed_syncs(directories: int, seed: int, step: int, first: int, path: str = "") -> Counts:
    """Make every `step`-th sync on matching paths fail.

    Three variants: its bytes are lost, they are written all the same, or all later syncs fail as well.
    """
    counts = Counts()
    for number in range(1 + first, operations_of(directories, seed, ("sync",), path) + 1, step):
        for kept, lasting in ((False, False), (True, False), (False, True)):
            counts.tried["failed syncs"] += 1
            _try_failure(directories, seed, counts, ("sync",), number, errno.EIO, kept=kept, lasting=lasting, path=path)
    return counts


def _try_failure(
    directories: int,
    seed: int,
    counts: Counts,
    kinds: tuple[str, ...],
    number: int,
    code: int,
    *,
    lasting: bool = False,
    kept: bool = False,
    path: str = "",
) -> None:
    settings = settings_of(directories)
    machine = machine_of(settings)
    lives = Lives(machine, settings)
    fault = machine.disk.fault = NthFails(lives, kinds, number, code, lasting=lasting, path=path)
    machine.disk.failed_sync_kept = kept
    problems: list[str] = []
    with small_commits():
        try:
            machine.run(_played(lives, seed, fault, problems, sync=code == errno.EIO))
        except (TriplicateError, OSError, SimulationStuck, ConnectionClosed, AssertionError) as error:
            problems.append(f"{type(error).__name__}: {error}")
        finally:
            lives.kill()
            machine.close()
    problems += [f"a failure on the loop: {failure}" for failure in machine.loop.failures]
    if not fault.struck:
        problems.append("nothing failed, so nothing was tried")
    what = "lasting " if lasting else "kept " if kept else ""
    counts.lose(f"{directories} directories, {what}{errno.errorcode[code]} at number {number}, {fault.struck}", problems)


async def _played(lives: Lives, seed: int, fault: NthFails, problems: list[str], *, sync: bool) -> None:
    """Run until the fault is over. Then check in the same life, in the next, in a third one that wrote more, and after power cuts."""
    ended = await _play_or_fail(lives, seed, problems)
    if sync and not ended:
        missed = [operation for operation in fault.failed if not may_be_ignored(operation, lives.machine.disk.record)]
        problems += [f"a sync failed, of {operation.path}, and the bookie went on" for operation in missed[:1]]
    lives.machine.disk.fault = None
    if lives.bookie is not None and not ended:
        await _hold(lives, "in the same life", problems)
    lives.kill()
    await _cut(lives, "after the end", problems)
    await lives.start()
    await _hold(lives, "in the next life", problems)
    await _cut(lives, "at the start of the next life", problems)
    for ledger_id in range(20, 23):
        await lives.create(ledger_id)
        await lives.add_some(ledger_id, range(2), b"t" * 90)
    await _cut(lives, "after further adds", problems)
    await lives.flush()
    await _cut(lives, "after a further flush", problems)
    await lives.add_some(20, range(2, 5), b"u" * 3000)
    for _ in range(3):
        await lives.add_some(21, range(2, 5), b"v" * 3000)
        await lives.flush()
    await _hold(lives, "after further flushes", problems)
    await _cut(lives, "after further flushes", problems)
    await lives.stop()
    await _cut(lives, "after a stop", problems)


async def _play_or_fail(lives: Lives, seed: int, problems: list[str]) -> str:
    """Returns how the workload ended: by the bookie's failure, by a refused start, or "" if it completed."""
    task = lives.machine.loop.start_task(run_workload(lives, seed))
    end_s = lives.machine.loop.time() + PATIENCE_S
    while not task.done() and not _has_failed(lives):
        if lives.machine.loop.time() > end_s:
            problems.append(f"the workload hangs: {lives.machine.loop.describe_waiting()}")
            break
        await asyncio.sleep(0.02)
    if not task.done():
        # Requests that wait for a failed bookie are answered, or their connection is closed.
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.wait([task])
        return "failed"
    try:
        task.result()
    except (TriplicateError, OSError) as error:
        if not str(error):
            problems.append(f"ended without a word: {error!r}")
        return str(error)
    except ConnectionClosed:
        return "closed"
    return ""


def may_be_ignored(operation: FailedOperation, record: Sequence[Operation]) -> bool:
    """Whether a bookie may continue after the failed sync, since no answer relies on it.

    One case is the reserve, which is made again: its own sync, or its directory's sync behind the rename. The other is a file that is
    being made into a journal's spare, while the bookie stops: no start keeps such a file, and its waiters are cancelled. A running
    bookie must end.
    """
    before = record[operation.place - 1] if operation.place else None
    moved = isinstance(before, NameChange) and any("RESERVE" in path for path, _ in before.moves)
    name = operation.path.rpartition("/")[2]
    return "RESERVE" in name or moved or (name == PREPARED_NAME and operation.stopping)


def _has_failed(lives: Lives) -> bool:
    return lives.bookie is not None and lives.bookie.failed


async def _hold(lives: Lives, when: str, problems: list[str]) -> None:
    expected = Expected(lives.book, lives.place, True, {})
    problems += [f"{when}: {problem}" for problem in await ask_everything(lives, expected)]


async def _cut(lives: Lives, when: str, problems: list[str]) -> None:
    """The disk after a power cut at this moment; the workload itself continues."""
    medium = lives.machine.disk.medium
    expected = Expected(lives.book, lives.place, False, nodes_at(lives.metadata_at, lives.place) or {})
    image = medium.cut([])
    # Another loop must not run within this one.
    running = asyncio.events._get_running_loop()
    asyncio.events._set_running_loop(None)
    try:
        verdict = try_start(Medium(image), lives.settings, expected)
    finally:
        asyncio.events._set_running_loop(running)
    problems += [f"a power cut {when}: {problem}" for problem in verdict.problems]
