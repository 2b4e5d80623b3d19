"""Garbage collection: deletes ledgers whose metadata is gone, and entry logs in which nothing lives.

A ledger is deleted only if two checks agree: it is missing from a complete listing that began after the bookie made its own list (metadata
exists before any entry is written, so a new ledger cannot be missing), and a look-up by its id does not find it. When the metadata cannot
answer, nothing is deleted. Many ledgers are looked up at once, so that the duration of a round does not grow by one round trip per ledger.
Source: BookKeeper `ScanAndCompareGarbageCollector`.

A ledger whose metadata lies in the trash may be undeleted. It is only noted until both checks of every round have missed it for
`trash_period_s`. A ledger that was undeleted and deleted again between two rounds is missing in each of them, so its period begins with
the deletion that the trash records. A ledger without a record in the trash cannot be undeleted and is deleted at once; Apache's clients
and a trash period of 0 leave none. A deletion writes the record before the metadata is removed, and an undelete removes it after the
metadata is back, so a ledger that can be undeleted is always in one of the two places.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.storage.storage import Storage
from triplicate.errors import CorruptionError, FormatError, MetadataError
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, TaskScope, sleep

Answer = TypeVar("Answer")

DELETED_AT_ONCE = 100
QUESTIONS_AT_ONCE = 50
"""Number of metadata look-ups in flight. One at a time would make a round as long as the sum of its answers."""
EXPIRED_PAGES = 50
"""Maximum number of trash pages that one round empties, if everything on them is due."""


@dataclass(frozen=True, slots=True)
class CollectionReport:
    """One round of garbage collection.

    Attributes:
        ledgers: deleted ones. held: ledgers before the round. trash: ledgers without metadata that wait for the end of the trash period.
        freed_bytes: of deleted entry logs.
        began_ms, ended_ms: milliseconds since the epoch.
    """

    ledgers: int
    held: int
    trash: int
    freed_bytes: int
    began_ms: int
    ended_ms: int


class GarbageCollector:
    """See the module's text. `metadata` may be replaced when a new session was opened.

    Rounds run one at a time, also those that an operator has requested.

    `on_full_disk` is called when a round found no space.
    """

    def __init__(
        self,
        host: Host,
        metadata: ClusterMetadata,
        storage: Storage,
        metrics: BookieMetrics,
        interval_s: float,
        trash_period_s: float = 0.0,
        on_full_disk: Callable[[], None] | None = None,
    ) -> None:
        self.metadata = metadata
        self._host = host
        self._storage = storage
        self._metrics = metrics
        self._interval_s = interval_s
        self._trash_period_s = trash_period_s
        self._on_full_disk = on_full_disk
        self.running_since_ms: int | None = None
        """When the present round began, milliseconds since the epoch; None: no round is under way."""
        self.last_report: CollectionReport | None = None
        """Of the last complete round of this process."""
        self._turn = asyncio.Lock()
        self._waited_for: dict[int, int] = {}
        """The deletion, as dated by the trash, with which a ledger's period began again; by ledger."""

    async def run(self) -> None:
        while True:
            await sleep(self._host.clock, self._interval_s)
            try:
                await self.collect()
            except (MetadataError, CorruptionError) as error:
                self._host.trace("bookie.gc_put_off", error=str(error))
            except OSError as error:
                # Any other error may be a failed sync, and such a disk must not be written to.
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                self._host.trace("bookie.gc_put_off", error=str(error))
                if self._on_full_disk is not None:
                    self._on_full_disk()

    async def collect(self) -> int:
        """Run one round; returns how many ledgers were deleted. Raises as `run_round`."""
        return (await self.run_round()).ledgers

    async def run_round(self) -> CollectionReport:
        """Run one round, after the one under way.

        Raises:
            MetadataError: the metadata could not answer, so nothing was deleted. OSError, CorruptionError: of index and logs.
        """
        async with self._turn:
            self.running_since_ms = self._now_ms()
            try:
                self.last_report = await self._collect(self.running_since_ms)
            finally:
                self.running_since_ms = None
            return self.last_report

    async def _collect(self, began_ms: int) -> CollectionReport:
        held = await self._storage.ledger_ids()
        self._metrics.ledgers_active.set(len(held))
        missing = await self._missing(held)
        unkept = await self._unkept(missing) if self._trash_period_s > 0 else []
        gone = sorted([*unkept, *await self._due(sorted(set(missing) - set(unkept)))])
        for start in range(0, len(gone), DELETED_AT_ONCE):
            part = gone[start : start + DELETED_AT_ONCE]
            await self._storage.delete_ledgers(part)
            self._metrics.ledgers_deleted.inc(len(part))
            self._host.trace("bookie.ledgers_deleted", count=len(part), first=part[0], last=part[-1])
        freed = await self._storage.delete_dead_logs()
        if freed:
            self._metrics.bytes_reclaimed.inc(freed)
            self._host.trace("bookie.entry_logs_deleted", freed_bytes=freed)
        if self._trash_period_s > 0:
            await self.metadata.trash.expire(pages=EXPIRED_PAGES)
        return CollectionReport(len(gone), len(held), len(missing) - len(gone), freed, began_ms, self._now_ms())

    def _now_ms(self) -> int:
        return self._host.clock.wall_us() // 1000

    async def _unkept(self, missing: list[int]) -> list[int]:
        """The missing ledgers that cannot be undeleted, since they are not in the trash.

        Checked after the ledger was found missing, over the same session, which never goes back in time: first a listing of the trash,
        then a look-up by id, as in `_deleted_ms`, which notices an undelete in between.
        """
        kept = set(await self.metadata.trash.ledger_ids()) if missing else set()
        unlisted = [ledger_id for ledger_id in missing if ledger_id not in kept]
        now_ms = self._host.clock.wall_us() // 1000
        deleted = await _for_each_ledger(unlisted, lambda ledger_id: self._known_deletion_ms(ledger_id, now_ms))
        unkept = [ledger_id for ledger_id, deleted_ms in zip(unlisted, deleted, strict=True) if deleted_ms is None]
        if unkept:
            self._host.trace("bookie.ledgers_not_in_trash", count=len(unkept), first=unkept[0], last=unkept[-1])
        return unkept

    async def _due(self, missing: list[int]) -> list[int]:
        """The ledgers, ascending, whose trash period is over. Updates the notes about the others."""
        stored, on_writer = self._storage.stored, self._storage.on_writer
        noted = await on_writer(stored.index.missing)
        now_ms = await self.metadata.trash.now_ms() if self._trash_period_s > 0 else 0
        due = [
            ledger
            for ledger in missing
            if self._trash_period_s <= 0 or _since(noted, ledger, now_ms) + self._trash_period_s * 1000 <= now_ms
        ]
        again = await self._deleted_again(due, now_ms) if self._trash_period_s > 0 else {}
        gone = set(due) - again.keys()
        new = [
            ledger for ledger in missing if ledger not in gone and ledger not in again and (ledger not in noted or noted[ledger] > now_ms)
        ]
        found_again = sorted(noted.keys() - set(missing))
        if new or found_again:
            await on_writer(stored.index.note_missing, now_ms, new, found_again)
            self._host.trace("bookie.ledgers_missing", new=len(new), found_again=len(found_again))
        for ledger, deleted_ms in again.items():
            # The clock of the deleting client may be ahead.
            await on_writer(stored.index.note_missing, min(deleted_ms, now_ms), [ledger])
        waiting = set(missing) - gone
        self._waited_for = {ledger: ms for ledger, ms in (self._waited_for | again).items() if ledger in waiting}
        self._metrics.trash_ledgers.set(len(waiting))
        self._metrics.trash_bytes.set(await on_writer(stored.index.missing_bytes))
        return sorted(gone)

    async def _deleted_again(self, due: list[int], now_ms: int) -> dict[int, int]:
        """The ledgers that may still be undeleted, with the time of their deletion, milliseconds since the epoch.

        However far clocks are apart, the same deletion is waited for only once, unless the process ended meanwhile.
        """
        deleted = await _for_each_ledger(due, lambda ledger_id: self._known_deletion_ms(ledger_id, now_ms))
        again: dict[int, int] = {}
        for ledger_id, deleted_ms in zip(due, deleted, strict=True):
            if deleted_ms is None or self._waited_for.get(ledger_id) == deleted_ms:
                continue
            if deleted_ms + self._trash_period_s * 1000 > now_ms:
                again[ledger_id] = deleted_ms
        return again

    async def _known_deletion_ms(self, ledger_id: int, now_ms: int) -> int | None:
        """As `_deleted_ms`; `now_ms` if the record in the trash is not understood."""
        try:
            return await self._deleted_ms(ledger_id, now_ms)
        except FormatError as error:
            self._host.trace("bookie.trash_not_understood", ledger_id=ledger_id, error=str(error))
            return now_ms  # Perhaps from a newer release, which can undelete the ledger.

    async def _deleted_ms(self, ledger_id: int, now_ms: int) -> int | None:
        """The time when a missing ledger was deleted, `now_ms` if it exists again, None if it is gone for good. Raises FormatError."""
        trash = self.metadata.trash
        found = await trash.get(ledger_id)
        if found is None:
            # An undelete may have removed the record meanwhile, and another deletion may write one after this look-up.
            if await self.metadata.ledgers.exists(ledger_id):
                return now_ms
            found = await trash.get(ledger_id)
        return found.deleted_ms if found is not None else None

    async def _missing(self, held: list[int]) -> list[int]:
        """The ids, ascending, that neither the listing nor a look-up by id finds."""
        if not held:
            return []
        unlisted: list[int] = []
        position = 0
        async for listed in self.metadata.ledgers.ids():
            while position < len(held) and held[position] < listed:
                unlisted.append(held[position])
                position += 1
            if position < len(held) and held[position] == listed:
                position += 1
        unlisted += held[position:]
        if unlisted:
            # A ZooKeeper server may be behind the one that recorded the ledger's creation.
            await self.metadata.ledgers.refresh()
        there = await _for_each_ledger(unlisted, self.metadata.ledgers.exists)
        missing = [ledger_id for ledger_id, exists in zip(unlisted, there, strict=True) if not exists]
        if missing:
            # Another cluster under the same root has other ledgers.
            await self.metadata.check_same()
        return missing


async def _for_each_ledger(ledger_ids: Sequence[int], ask: Callable[[int], Coroutine[Any, Any, Answer]]) -> list[Answer]:
    """Call `ask` for each ledger, `QUESTIONS_AT_ONCE` at a time; returns the answers in the order of the ids. Raises the first error."""
    answers: list[Answer] = []
    for start in range(0, len(ledger_ids), QUESTIONS_AT_ONCE):
        async with TaskScope("garbage") as scope:
            asked = [scope.spawn(ask(ledger_id), name="question") for ledger_id in ledger_ids[start : start + QUESTIONS_AT_ONCE]]
        answers += [task.result() for task in asked]
    return answers


def _since(noted: dict[int, int], ledger_id: int, now_ms: int) -> int:
    """The time since when a ledger is known to be missing. A clock that was set back starts the period again."""
    return min(noted.get(ledger_id, now_ms), now_ms)
