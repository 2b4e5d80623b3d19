"""Copies entries of one ledger to one bookie.

Each entry is read from another bookie, its digest is verified, and the same bytes are written by a recovery add, which passes the fence.
A copy that is damaged or missing is not used; the entry's next replica is read. At the end the bookie must list every entry, or deliver it
where it gives no lists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from triplicate.autorecovery.copy_pace import CopyPace
from triplicate.autorecovery.core.fragments import LedgerFragment, missing_runs
from triplicate.autorecovery.entry_finder import EntryFinder
from triplicate.autorecovery.recovery_metrics import RecoveryMetrics
from triplicate.client import BookieCopies, CopyStream
from triplicate.config import AutorecoverySettings
from triplicate.errors import BookieError, BookieUnavailable, CopyUnreadable, DigestMismatch, NoGoodCopy, RequestTimeout, TooManyRequests
from triplicate.ledger import Availability, EntryCodec
from triplicate.runtime import AdmissionWindow, TaskScope, fault_point, map_bounded

READS_AT_ONCE = 64
"""Reads of one ledger that wait for answers. The sizes of the entries are unknown, so that their number bounds the memory. A bookie
answers reads without a sync, so that few are enough."""
GROUP_BYTES = 256 * 1024
"""Entries that one batch read requests, estimated from the largest entry read."""
GROUP_ENTRIES = 64
APART_ENTRIES = 16
"""Entries whose single reads one lane requests together, where a bookie stores no consecutive entries or knows no batch reads."""
FIRST_ENTRY_BYTES = 64 * 1024
"""Assumed size of an entry before the first one was read, where the metadata does not show the average."""

Copied = Callable[[int, int], None]
"""Called with the number of entries that were copied, and their bytes."""


@dataclass(frozen=True, slots=True)
class CopyJob:
    """Entries of a fragment that a bookie is to store.

    Args:
        stored: the entries of the ledger that the target has already; they are not copied.
        target: the bookie that gets them: the fragment's own, or one that replaces it.
        last_resort: bookies that are read last, because they are lost.
        damaged: entries whose copies on the target are damaged or missing, ascending. If there are any, these are copied, in place of those
            that are not `stored`; the caller reads them back, and the target need not answer requests for lists.
    """

    fragment: LedgerFragment
    stored: Availability
    target: str
    last_resort: Collection[str]
    damaged: Sequence[int] = ()

    def entry_ids(self) -> Iterator[int]:
        """The entries to copy; the damaged ones, and ascending, if there are any."""
        if self.damaged:
            return iter(self.damaged)
        return (entry_id for run in missing_runs(self.fragment, self.stored) for entry_id in run)

    @property
    def count(self) -> int:
        """Number of entries to copy."""
        if self.damaged:
            return len(self.damaged)
        return sum(map(len, missing_runs(self.fragment, self.stored))) if self.stored.groups else self.fragment.count

    @property
    def is_striped(self) -> bool:
        """Whether the fragment's bookie stores only some entries of the segment."""
        return self.fragment.write_quorum < len(self.fragment.ensemble)

    def sources(self, entry_id: int, failing: Collection[str], turn: int = 0) -> list[str]:
        """The bookies to read an entry from, in this order: lost ones last, and before them those that are `failing`.

        After all others comes a target whose copies are damaged: it may still deliver an intact copy from memory.

        Args:
            turn: which of the other copies is the first. Successive turns spread the reads over the bookies.
        """
        fragment = self.fragment
        copies = fragment.sources(entry_id)
        first = turn % max(1, len(copies))
        present = (*copies[first:], *copies[:first], fragment.bookie_id)
        others = [bookie_id for bookie_id in present if bookie_id != self.target or self.damaged]
        return sorted(others, key=lambda bookie_id: (bookie_id == self.target, bookie_id in self.last_resort, bookie_id in failing))


class LedgerCopier:
    """Copies entries of one ledger, several at a time, at the rate of a process.

    Args:
        finder: finds what the target stores.
        pace: of all copies of the process.
        copied: called with the entries that were copied, and their bytes.
        bad_copies: gets the entries whose copies on other bookies were found damaged, by bookie.
        average_bytes: average size of the ledger's entries with headers; 0 if unknown. It is the estimate until one was read.
    """

    def __init__(
        self,
        copies: BookieCopies,
        codec: EntryCodec,
        finder: EntryFinder,
        settings: AutorecoverySettings,
        pace: CopyPace,
        metrics: RecoveryMetrics,
        copied: Copied,
        bad_copies: dict[str, set[int]],
        average_bytes: int = 0,
    ) -> None:
        self._copies = copies
        self._codec = codec
        self._finder = finder
        self._settings = settings
        self._pace = pace
        self._metrics = metrics
        self._copied = copied
        self._bad_copies = bad_copies
        self._window = AdmissionWindow(settings.window_entries, settings.window_bytes)
        self._reads = asyncio.Semaphore(min(READS_AT_ONCE, settings.window_entries))
        self._groups_apart = asyncio.Semaphore(max(1, min(READS_AT_ONCE, settings.window_entries) // APART_ENTRIES))
        self._largest = 0
        """Bytes of the largest entry read; 0 before the first."""
        self._average = average_bytes
        self._turn = 0
        """Groups read so far."""
        self._failing: dict[str, None] = {}
        """Bookies that left a read without a usable answer. They are read from after the others."""

    async def copy(self, job: CopyJob) -> None:
        """Copy the entries of a job, and check that the target has all entries of the fragment. May be repeated.

        Raises:
            NoGoodCopy: no bookie delivered an intact copy of an entry. BookieError: the target failed, or does not have an entry.
        """
        if not job.damaged:
            # A target that refuses to list its entries, such as one whose disks were replaced, is found out before anything is copied.
            await self._finder.listed(job.target, next(job.entry_ids(), job.fragment.first_entry_id))
        stream = self._copies.open_stream(self._codec, job.target)
        waiting = job.entry_ids()
        try:
            async with TaskScope(f"copies of ledger {self._codec.ledger_id} to {job.target}") as scope:
                for _ in range(min(READS_AT_ONCE, self._settings.window_entries, job.fragment.count)):
                    scope.spawn(self._copy_next(job, stream, waiting), name="copy")
        finally:
            stream.close()
        if not job.damaged:
            await self.verify(job)

    async def verify(self, job: CopyJob) -> None:
        """Check that the target lists every entry of the fragment, or delivers it where it gives no lists.

        Raises:
            BookieError: it does not, or gave no usable answer.
        """
        stored = await self._finder.find(job.target, [job.fragment])
        missing = next(missing_runs(job.fragment, stored.good), None)
        if missing is not None:
            verb = "deliver" if stored.was_read else "list"
            error = BookieError(
                f"bookie {job.target} acknowledged copies of ledger {self._codec.ledger_id} and does not {verb} entry {missing.start}; "
                "the metadata is unchanged"
            )
            error.bookie_id = job.target
            raise error

    async def damaged(self, fragment: LedgerFragment, entry_ids: Iterable[int]) -> list[int]:
        """Those of these entries whose copies on the fragment's bookie are not intact: damaged, unreadable or absent.

        Raises:
            BookieError: the bookie did not answer.
        """
        found: list[int] = []

        async def check(entry_id: int) -> None:
            async with self._reads:
                is_intact, size_bytes = await self._is_intact(fragment.bookie_id, entry_id)
            if not is_intact:
                found.append(entry_id)
            await self._pace.admit(size_bytes)

        waiting = iter(entry_ids)
        while chunk := list(islice(waiting, READS_AT_ONCE)):
            await map_bounded(check, chunk, most=READS_AT_ONCE, name=f"checks of copies on {fragment.bookie_id}")
        return sorted(found)

    async def _is_intact(self, bookie_id: str, entry_id: int) -> tuple[bool, int]:
        try:
            body = await self._copies.read(self._codec, entry_id, bookie_id)
        except DigestMismatch:
            return False, self._largest
        except (BookieUnavailable, RequestTimeout, TooManyRequests):
            raise
        except BookieError:
            # The bookie answered that it cannot read the entry.
            return False, 0
        return body is not None, len(body or b"")

    async def _copy_next(self, job: CopyJob, stream: CopyStream, waiting: Iterator[int]) -> None:
        while group := list(islice(waiting, self._group_entries(job))):
            turn = self._turn
            self._turn += 1
            while group:
                # An answer may end early: entries are larger than expected, or one is damaged. The rest of the group is admitted again, and
                # requested from the same bookie, so that a damaged copy is found.
                copied = await self._copy_first(job, stream, group, turn)
                group = group[copied:]

    async def _copy_first(self, job: CopyJob, stream: CopyStream, group: Sequence[int], turn: int) -> int:
        """Copy at least the first entry of a group, in one answer if possible. Returns the number of entries copied."""
        entries = len(group)
        size_bytes = min(entries * self._entry_bytes or FIRST_ENTRY_BYTES, self._settings.window_bytes)
        await self._window.admit(entries, size_bytes)
        try:
            bodies = await self._read_group(job, group, turn)
            present = sum(map(len, bodies))
            self._largest = max(self._largest, *map(len, bodies))
            self._window.occupy(0, present - size_bytes)
            self._window.release(entries - len(bodies), 0)
            entries, size_bytes = len(bodies), present
            await self._pace.admit(size_bytes)
            await asyncio.gather(*(stream.add(entry_id, body) for entry_id, body in zip(group, bodies, strict=False)))
        finally:
            self._window.release(entries, size_bytes)
        self._metrics.entries_written.inc(entries)
        self._metrics.bytes_written.inc(size_bytes)
        self._copied(entries, size_bytes)
        return entries

    @property
    def _entry_bytes(self) -> int:
        """Expected size of an entry; 0 if nothing is known."""
        return self._largest or self._average

    def _group_entries(self, job: CopyJob) -> int:
        """How many entries are read together: one while the size of an entry is unknown."""
        if not self._entry_bytes:
            return 1
        most = APART_ENTRIES if self._are_read_apart(job) else GROUP_ENTRIES
        return max(1, min(most, GROUP_BYTES // self._entry_bytes, self._settings.window_entries))

    def _are_read_apart(self, job: CopyJob) -> bool:
        """Whether entries are read one by one: the bookies of a striped fragment store few consecutive ones."""
        return job.is_striped or not self._copies.has_batches

    async def _read_group(self, job: CopyJob, group: Sequence[int], turn: int) -> list[bytes]:
        """Intact copies of at least the first entry of a group."""
        if len(group) > 1 and self._are_read_apart(job):
            async with self._groups_apart:
                return await self._read_apart(job, group, turn)
        async with self._reads:
            return await self._read_together(job, group, turn)

    async def _read_apart(self, job: CopyJob, group: Sequence[int], turn: int) -> list[bytes]:
        """All entries by single reads: each source gets the requests for its entries at once."""
        of_source: dict[str, list[int]] = {}
        for entry_id in group:
            for bookie_id in job.sources(entry_id, self._failing, turn)[:1]:
                of_source.setdefault(bookie_id, []).append(entry_id)
        found: dict[int, bytes] = {}
        for bodies in await asyncio.gather(*(self._read_each(entry_ids, bookie_id) for bookie_id, entry_ids in of_source.items())):
            found |= bodies
        return [found[entry_id] if entry_id in found else await self._read(job, entry_id, turn) for entry_id in group]

    async def _read_each(self, entry_ids: Sequence[int], bookie_id: str) -> dict[int, bytes]:
        """The intact copies among these entries of a bookie; none if a read got no usable answer."""
        try:
            return await self._copies.read_each(self._codec, entry_ids, bookie_id)
        except BookieError:
            # The single reads that follow begin with another bookie, if there is one, and report the answer of each.
            self._failing[bookie_id] = None
            return {}

    async def _read_together(self, job: CopyJob, group: Sequence[int], turn: int) -> list[bytes]:
        """The first entries: a batch of those that are consecutive, or only the first if there is no usable answer."""
        consecutive = sum(1 for index, entry_id in enumerate(group) if entry_id == group[0] + index)
        bodies = await self._read_batch(job, group[0], consecutive, turn) if consecutive > 1 else []
        return bodies or [await self._read(job, group[0], turn)]

    async def _read_batch(self, job: CopyJob, first: int, count: int, turn: int) -> list[bytes]:
        """Intact copies of the first of `count` entries from `first` on; none if the first bookie has no intact copy of `first`."""
        bookie_id = next(iter(job.sources(first, self._failing, turn)), None)
        if bookie_id is None or not self._copies.has_batches:
            return []
        try:
            return await self._copies.read_batch(self._codec, first, count, GROUP_BYTES, bookie_id)
        except BookieError:
            # The single read that follows begins with another bookie, if there is one, and reports the answer of each.
            self._failing[bookie_id] = None
            return []

    async def _read(self, job: CopyJob, entry_id: int, turn: int) -> bytes:
        """An intact copy of an entry, from the first bookie that has one."""
        answers: list[str] = []
        for bookie_id in job.sources(entry_id, self._failing, turn):
            try:
                body = await self._copies.read(self._codec, entry_id, bookie_id)
            except (DigestMismatch, CopyUnreadable) as error:
                self._note_bad_copy(bookie_id, entry_id)
                answers.append(f"{bookie_id}: {error}")
            except BookieError as error:
                self._failing[bookie_id] = None
                answers.append(f"{bookie_id}: {error}")
            else:
                if body is not None:
                    return body
                answers.append(f"{bookie_id}: has no such entry")
        raise _no_good_copy(self._codec.ledger_id, entry_id, job, answers)

    @fault_point("autorecovery.bad_copy")
    def _note_bad_copy(self, bookie_id: str, entry_id: int) -> None:
        self._metrics.bad_copies.labels(bookie=bookie_id).inc()
        self._bad_copies.setdefault(bookie_id, set()).add(entry_id)


def _no_good_copy(ledger_id: int, entry_id: int, job: CopyJob, answers: list[str]) -> NoGoodCopy:
    fragment = job.fragment
    should_have = [fragment.bookie_id, *fragment.sources(entry_id)]
    error = NoGoodCopy(
        f"entry {entry_id} of ledger {ledger_id} has no intact copy: it should be on {', '.join(should_have)}; "
        f"{'; '.join(answers) or 'no other bookie stores it'}"
    )
    error.ledger_id = ledger_id
    error.entry_id = entry_id
    return error
