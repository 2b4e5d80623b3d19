"""Checks the copies of one ledger: the list of entries of each bookie, and, on request, every copy with its digest.

The copies of a bookie that gives no lists are read in any case.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice

from triplicate.autorecovery.core.fragments import LedgerFragment, missing_runs
from triplicate.autorecovery.core.ledger_copies import BookieAnswer, LedgerCopies, copies_of, expected_fragments
from triplicate.autorecovery.entry_finder import EntryFinder, StoredEntries
from triplicate.client import BookieCopies, Client
from triplicate.errors import BookieError, CopyUnreadable, DigestMismatch, FormatError, ProtocolError, Unauthorized
from triplicate.ledger import DigestType, EntryCodec, LedgerMetadata
from triplicate.runtime import map_bounded, sleep, timeout_at

BOOKIES_AT_A_TIME = 16
READS_AT_A_TIME = 16
"""Reads in flight at one bookie."""
READS_CHUNK = 1024
"""Entries between two reports of progress."""
RESTARTS_MAX = 5
"""How many times the check begins again because the ledger's segments changed meanwhile."""
LISTS_MAX = 3
"""How many times a bookie lists an open ledger until it has all confirmed entries."""
LIST_AGAIN_S = 1.0
"""Pause before a bookie of an open ledger lists its entries again: a confirmed entry may still be on the way to the last bookie."""


class CopyState(enum.Enum):
    """The answer to the read of one copy."""

    GOOD = "good"
    BAD = "bad"
    DENIED = "denied"


class LedgerChecker:
    """One check of one ledger.

    Args:
        limit_s: longest wait for one answer of a bookie, in seconds. A bookie that takes longer counts as silent.
        read: whether to read every copy, and not only the lists of entries.
        progress: called with the number of copies that were read.
        requests: connections to use; None to open some for each check.
    """

    def __init__(
        self,
        client: Client,
        ledger_id: int,
        limit_s: float,
        *,
        read: bool = False,
        progress: Callable[[int], None] = lambda _: None,
        requests: BookieCopies | None = None,
    ) -> None:
        self._client = client
        self._ledger_id = ledger_id
        self._limit_s = limit_s
        self._read = read
        self._progress = progress
        self._requests = requests

    async def check(self, password: bytes = b"") -> LedgerCopies:
        """Check every copy. The ledger is neither fenced nor changed.

        Args:
            password: only for ledgers of old releases, whose metadata has none. Without it, their digests are not verified.

        Raises:
            NoSuchLedger: there is none. ReadFailed: the ledger is open, and its last-add-confirmed is unknown.
        """
        metadata = await self._client.metadata_of(self._ledger_id)
        for restart in range(RESTARTS_MAX):
            if metadata.credentials_stored:
                password = metadata.password
            copies = await self._check_once(metadata, password)
            present = await self._client.metadata_of(self._ledger_id)
            if (present.segments, present.state) == (metadata.segments, metadata.state) or restart == RESTARTS_MAX - 1:
                break
            metadata = present
        return copies

    async def _check_once(self, metadata: LedgerMetadata, password: bytes) -> LedgerCopies:
        last_entry_id = await self._end(metadata, password)
        fragments = expected_fragments(metadata, last_entry_id)
        codec = codec_of(self._ledger_id, metadata, password)
        bookies = list(dict.fromkeys(bookie_id for segment in metadata.segments for bookie_id in segment.ensemble))
        async with nullcontext(self._requests) if self._requests is not None else self._client.bookie_copies() as requests:

            async def examine(bookie_id: str) -> BookieAnswer:
                own = [fragment for fragment in fragments if fragment.bookie_id == bookie_id]
                finder = EntryFinder(requests, codec, self._client.host.clock, self._limit_s)
                return await self._examine(requests, finder, codec, bookie_id, own, metadata)

            answers = await map_bounded(examine, bookies, most=BOOKIES_AT_A_TIME, name="check of a ledger")
        return copies_of(self._ledger_id, metadata, last_entry_id, dict(zip(bookies, answers, strict=True)))

    async def _end(self, metadata: LedgerMetadata, password: bytes) -> int:
        if metadata.is_closed:
            return metadata.last_entry_id
        async with await self._client.open(self._ledger_id, password=password) as reader:
            return await reader.read_last_confirmed()

    async def _examine(
        self,
        requests: BookieCopies,
        finder: EntryFinder,
        codec: EntryCodec,
        bookie_id: str,
        own: list[LedgerFragment],
        metadata: LedgerMetadata,
    ) -> BookieAnswer:
        try:
            stored = await self._find(finder, bookie_id, own, metadata)
            answer = BookieAnswer(stored.present, bad=stored.damaged)
            # Entries that a bookie without lists delivered are verified already.
            return await self._read_copies(requests, codec, bookie_id, own, answer) if self._read and not stored.was_read else answer
        except TimeoutError:
            return BookieAnswer(silence=f"no answer within {self._limit_s:g} s")
        except (BookieError, ProtocolError, Unauthorized) as error:
            return BookieAnswer(silence=" ".join(str(error).split()))

    async def _find(self, finder: EntryFinder, bookie_id: str, own: list[LedgerFragment], metadata: LedgerMetadata) -> StoredEntries:
        for attempt in range(LISTS_MAX):
            stored = await finder.find(bookie_id, own)
            lacks = any(run for fragment in own for run in missing_runs(fragment, stored.present))
            if metadata.is_closed or not lacks or attempt == LISTS_MAX - 1:
                break
            await sleep(self._client.host.clock, LIST_AGAIN_S)
        return stored

    async def _read_copies(
        self, requests: BookieCopies, codec: EntryCodec, bookie_id: str, own: list[LedgerFragment], answer: BookieAnswer
    ) -> BookieAnswer:
        """Read every copy that the bookie lists. An error that proves nothing ends the reading, and the bookie counts as silent."""
        clock = self._client.host.clock

        async def read(entry_id: int) -> CopyState:
            try:
                async with timeout_at(clock.monotonic() + self._limit_s):
                    body = await requests.read(codec, entry_id, bookie_id)
            except (DigestMismatch, CopyUnreadable):
                return CopyState.BAD
            return CopyState.DENIED if body is None else CopyState.GOOD

        found: dict[CopyState, list[int]] = {state: [] for state in (CopyState.BAD, CopyState.DENIED)}
        entries = (entry_id for fragment in own for run in fragment.runs() for entry_id in run if entry_id in answer.stored)
        while chunk := list(islice(entries, READS_CHUNK)):
            states = await map_bounded(read, chunk, most=READS_AT_A_TIME, name="reads of copies")
            for entry_id, state in zip(chunk, states, strict=True):
                if state is not CopyState.GOOD:
                    found[state].append(entry_id)
            self._progress(len(chunk))
        return replace(answer, denied=tuple(found[CopyState.DENIED]), bad=tuple(found[CopyState.BAD]))


def codec_of(ledger_id: int, metadata: LedgerMetadata, password: bytes = b"") -> EntryCodec:
    """The codec for a check of copies.

    Metadata of the oldest format have neither digest type nor password, only defaults. Without a password, digests are not verified then:
    a check finds whether copies are there, and must not take each for damaged.
    """
    if metadata.credentials_stored:
        return EntryCodec(ledger_id, metadata.digest_type, metadata.password)
    return EntryCodec(ledger_id, metadata.digest_type if password else DigestType.DUMMY, password)


def bookies_to_mark(copies: LedgerCopies, registered: Collection[str]) -> tuple[str, ...]:
    """The bookies whose copies are missing or damaged, and the silent ones that are not registered."""
    return tuple(
        one.bookie_id for one in copies.bookies if one.expected and (one.needs_repair or (one.silence and one.bookie_id not in registered))
    )


async def mark_copies(client: Client, copies: LedgerCopies) -> tuple[str, ...]:
    """Mark the ledger as under-replicated on the bookies whose copies are missing or damaged, and on silent ones that are not registered.

    Damaged copies are recorded, so that a replication worker replaces them.

    Returns:
        The bookies of the mark; none if there is nothing to mark.
    """
    registered = await client.metadata.bookies.registered()
    lacking = bookies_to_mark(copies, registered.names)
    await report_damaged(client, copies)
    if lacking:
        await client.metadata.under_replication.mark(copies.ledger_id, lacking)
    return lacking


async def report_damaged(client: Client, copies: LedgerCopies) -> None:
    """Record the damaged copies, so that a worker replaces them on their bookies."""
    for one in copies.bookies:
        if one.bad:
            runs = [range(entry_id, entry_id + 1) for entry_id in one.bad]
            await client.metadata.damaged_copies.report(copies.ledger_id, one.bookie_id, runs)


async def mark_recorded_damage(client: Client, ledger_id: int) -> bool:
    """Mark a ledger on the bookies whose damaged copies are recorded, unless it is marked on them. Returns whether there is a record.

    A mark may be deleted without a repair: by a worker of BookKeeper's, or by one that had looked before the damage was recorded. A record
    that cannot be decoded is traced, and counts as none.
    """
    try:
        record = await client.metadata.damaged_copies.get(ledger_id)
    except FormatError as error:
        client.host.trace("autorecovery.damage_unreadable", ledger=ledger_id, error=str(error))
        return False
    if record is not None:
        await client.metadata.under_replication.mark(ledger_id, record.copies)
    return record is not None
