"""Finds which entries of a ledger a bookie stores: by its list or, where it gives none, by reading them.

A bookie whose files are damaged may be unable to make the list, and may still have readable copies.

A bookie of Apache's with `DbLedgerStorage` cannot list entries, and does not answer the request (BookKeeper 4.14 to 4.18,
`SingleDirectoryDbLedgerStorage.getListOfEntriesOfLedger`). Such a bookie is distinguished from one that hangs by its answers to reads. It
is remembered for `UNLISTED_S`, so that only one request for a list in that time waits for its limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from triplicate.autorecovery.copy_pace import CopyPace
from triplicate.autorecovery.core.fragments import LedgerFragment
from triplicate.client import BookieCopies
from triplicate.errors import CopyUnreadable, DigestMismatch, RequestTimeout
from triplicate.ledger import Availability, AvailabilityGroup, EntryCodec
from triplicate.runtime import Clock, map_bounded, timeout_at

READS_AT_A_TIME = 16
"""Reads in flight at one bookie."""
READS_CHUNK = 1024
"""Entries whose results are in memory before they are added up."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class StoredEntries:
    """The entries of a ledger on a bookie, as far as they were asked for.

    Args:
        present: the entries that the bookie lists or delivers; also damaged ones.
        damaged: entries that were read and whose digest is wrong, or which the bookie cannot read, ascending.
        was_read: whether the entries were read, and not listed.
    """

    present: Availability
    damaged: tuple[int, ...] = ()
    was_read: bool = False

    @property
    def good(self) -> Availability:
        """The entries that are not known to be damaged."""
        if not self.damaged:
            return self.present
        damaged = frozenset(self.damaged)
        return availability_of(entry_id for run in self.present.runs() for entry_id in run if entry_id not in damaged)


class EntryFinder:
    """Finds the entries of one ledger on single bookies.

    Args:
        clock, limit_s: longest wait for one answer of a bookie, in seconds; None: that of the client's settings.
        pace: limits the bytes that are read; None: no limit.
    """

    def __init__(
        self, copies: BookieCopies, codec: EntryCodec, clock: Clock, limit_s: float | None = None, pace: CopyPace | None = None
    ) -> None:
        self._copies = copies
        self._codec = codec
        self._clock = clock
        self._limit_s = limit_s
        self._pace = pace

    async def find(self, bookie_id: str, fragments: Sequence[LedgerFragment]) -> StoredEntries:
        """The entries of these fragments on a bookie. A list may name others as well.

        Args:
            fragments: in the order of their entries. They are read only if the bookie gives no list.

        Raises:
            BookieError, TimeoutError: no usable answer. ProtocolError: the list cannot be decoded. Unauthorized: the bookie requires
                authentication.
        """
        first = next((run.start for fragment in fragments for run in fragment.runs()), None)
        if first is None:
            return StoredEntries(Availability(()))
        listed = await self.listed(bookie_id, first)
        return StoredEntries(listed) if listed is not None else await self._read(bookie_id, fragments)

    async def listed(self, bookie_id: str, entry_id: int) -> Availability | None:
        """The entries that a bookie lists; None if it cannot make the list, or gives none and answers reads.

        Args:
            entry_id: the entry that is read if the list is not answered. Whether the bookie has it makes no difference.

        Raises:
            As `find`.
        """
        if self._copies.is_unlisted(bookie_id):
            return None
        try:
            return await self._limited(self._copies.listed(self._codec.ledger_id, bookie_id))
        except CopyUnreadable:
            return None
        except (RequestTimeout, TimeoutError):
            with suppress(DigestMismatch, CopyUnreadable):
                await self._limited(self._copies.read(self._codec, entry_id, bookie_id))
        self._copies.remember_unlisted(bookie_id)
        return None

    async def _read(self, bookie_id: str, fragments: Sequence[LedgerFragment]) -> StoredEntries:
        damaged: list[int] = []

        async def is_present(entry_id: int) -> bool:
            try:
                body = await self._limited(self._copies.read(self._codec, entry_id, bookie_id))
            except (DigestMismatch, CopyUnreadable):
                damaged.append(entry_id)
                return True
            if body is not None and self._pace is not None:
                await self._pace.admit(len(body))
            return body is not None

        present: list[range] = []
        entries = (entry_id for fragment in fragments for run in fragment.runs() for entry_id in run)
        while chunk := list(islice(entries, READS_CHUNK)):
            found = await map_bounded(is_present, chunk, most=READS_AT_A_TIME, name="reads of a bookie without lists")
            present += _runs(entry_id for entry_id, is_there in zip(chunk, found, strict=True) if is_there)
        return StoredEntries(_availability(present), tuple(sorted(damaged)), was_read=True)

    async def _limited(self, request: Awaitable[Answer]) -> Answer:
        if self._limit_s is None:
            return await request
        async with timeout_at(self._clock.monotonic() + self._limit_s):
            return await request


def availability_of(entry_ids: Iterable[int]) -> Availability:
    """These entries, which are ascending."""
    return _availability(_runs(entry_ids))


def _availability(runs: Iterable[range]) -> Availability:
    return Availability(AvailabilityGroup(run.start, run.start, len(run), 0) for run in runs)


def _runs(entry_ids: Iterable[int]) -> Iterator[range]:
    """Ascending ids as maximal ranges."""
    run = range(0)
    for entry_id in entry_ids:
        if run and entry_id == run.stop:
            run = range(run.start, entry_id + 1)
            continue
        if run:
            yield run
        run = range(entry_id, entry_id + 1)
    if run:
        yield run
