"""Repair of logs whose ledgers are gone: what is missing, whether it can be restored, and how the log continues without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.errors import ArgumentError, FormatError, NoNode, NoSuchLedger
from triplicate.log.core import lost_segments
from triplicate.log.core.head import Head, LogSegment, Owner, Page, SegmentState, check_text
from triplicate.log.store.head_store import HeadDecision, HeadStore, StoredHead
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.store.ownership import claim, release
from triplicate.runtime import sleep


@dataclass(frozen=True, slots=True)
class LostLedger:
    """A ledger that a log lists and that does not exist.

    Args:
        end_offset: offset after its last record; None for the open segment, whose end is unknown.
        undelete_until_ms: until when `triplicate ledger undelete` restores it, ms since the epoch; None if it cannot.
        is_unreadable: what the trash has of it cannot be read by this release; a later one may restore it.
    """

    ledger_id: int
    is_open: bool
    first_offset: int
    end_offset: int | None
    undelete_until_ms: int | None
    is_unreadable: bool = False


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of examining a log for missing ledgers.

    Args:
        lost: oldest first, the open segment's last.
        holes: offsets, end exclusive, of segments that were given up in earlier repairs.
        next_offset: where the log continues by default: beyond every offset that the lost open segment may have used.
    """

    head: Head
    lost: tuple[LostLedger, ...]
    holes: tuple[tuple[int, int], ...]
    next_offset: int

    @property
    def recoverable(self) -> tuple[LostLedger, ...]:
        """The lost ledgers that can still be restored."""
        return tuple(item for item in self.lost if item.undelete_until_ms is not None)

    @property
    def open_is_lost(self) -> bool:
        return any(item.is_open for item in self.lost)


async def examine(client: LedgerClient, store: HeadStore, name: str) -> Examination:
    """Check that every ledger of a log exists. Raises NoSuchLog."""
    backoff = store.backoff()
    while True:
        await store.sync()
        there = {ledger_id async for ledger_id in client.ledger_ids()}
        stored = await store.read(name)
        try:
            segments = await store.listed(name, stored)
            found = [await _lost(client, store, segment) for segment in _with_ledgers(segments) if segment.ledger_id not in there]
        except NoNode:
            if backoff.attempts >= store.settings.change_attempts:
                raise
        else:
            # A ledger may have been truncated since the head was read.
            if (await store.read(name)).version == stored.version or backoff.attempts >= store.settings.change_attempts:
                return _examination(stored.head, segments, [item for item in found if item is not None])
        await sleep(store.host.clock, backoff.next_s())


def _with_ledgers(segments: Sequence[LogSegment]) -> list[LogSegment]:
    return [segment for segment in segments if segment.state in lost_segments.HAVE_LEDGERS]


def _examination(head: Head, segments: Sequence[LogSegment], found: Sequence[LostLedger]) -> Examination:
    holes = tuple((segment.first_offset, segment.end_offset) for segment in segments if segment.state is SegmentState.LOST)
    beyond = any(item.is_open for item in found)
    return Examination(head, tuple(found), holes, lost_segments.end_beyond_doubt(head) if beyond else head.closed_end)


async def _lost(client: LedgerClient, store: HeadStore, segment: LogSegment) -> LostLedger | None:
    """A segment's ledger if it is really gone: it may have been created after the ledgers were listed."""
    try:
        await store.ledgers.get(segment.ledger_id)
    except NoSuchLedger:
        is_open = segment.state is SegmentState.OPEN
        until_ms, is_unreadable = await _trashed(client, store, segment.ledger_id)
        end_offset = None if is_open else segment.end_offset
        return LostLedger(segment.ledger_id, is_open, segment.first_offset, end_offset, until_ms, is_unreadable)
    return None


async def _trashed(client: LedgerClient, store: HeadStore, ledger_id: int) -> tuple[int | None, bool]:
    """Until when a ledger can be restored, by the metadata store's clock, and whether what the trash has of it is unreadable."""
    try:
        trashed = await client.metadata.trash.get(ledger_id)
    except FormatError as error:
        client.host.trace("log.trash_unreadable", ledger=ledger_id, error=repr(error))
        return None, True
    if trashed is None or trashed.undelete_until_ms() <= await store.now_ms():
        return None, False
    return trashed.undelete_until_ms(), False


async def repair(client: LedgerClient, store: HeadStore, name: str, *, end: int | None, by: str) -> Examination:
    """Give up segments that cannot be restored, and let the log continue. Returns what is missing afterwards.

    A closed segment whose ledger is gone is marked as lost and keeps its offsets. An open one is closed in a new epoch.

    Args:
        end: where the log continues after a lost open segment; None: beyond every offset that the segment may have used.
        by: name of the operator, for messages.

    Raises:
        ArgumentError: a ledger can still be restored, perhaps by a later release, or `end` lies before the open segment. LogOwned: a
        writer is alive.
    """
    found = await examine(client, store, name)
    if found.recoverable:
        commands = ", ".join(f"`triplicate ledger undelete {item.ledger_id}`" for item in found.recoverable)
        raise ArgumentError(f"log {name!r}: nothing was changed, because lost ledgers can be restored: {commands}")
    if unreadable := [str(item.ledger_id) for item in found.lost if item.is_unreadable]:
        raise ArgumentError(
            f"log {name!r}: nothing was changed, because the trash has ledgers in a format of a later release, which may restore them: "
            f"{', '.join(unreadable)}. Undelete them, or repair the log, by that release"
        )
    closed = frozenset(item.ledger_id for item in found.lost if not item.is_open)
    if closed:
        await _lose_closed(store, name, found.head.log_id, closed)
    if found.open_is_lost:
        await _lose_open(store, name, found, end, by)
    client.host.trace("log.repaired", log=name, by=by, ledgers=",".join(str(item.ledger_id) for item in found.lost))
    return await examine(client, store, name)


async def _lose_closed(store: HeadStore, name: str, log_id: str, ledger_ids: frozenset[int]) -> None:
    async def decide(stored: StoredHead) -> HeadDecision | None:
        await _check_gone(store, name, ledger_ids)
        pages: dict[int, Page] = await store.pages(name, stored.head)
        change = lost_segments.lose_closed(stored.head, ledger_ids, pages, store.token())
        unchanged = change.head.recent == stored.head.recent and change.head.pages == stored.head.pages
        return None if unchanged else (change, ())

    await store.change(name, decide, log_id=log_id)


async def _check_gone(store: HeadStore, name: str, ledger_ids: frozenset[int]) -> None:
    """Raise ArgumentError if a ledger is there again."""
    for ledger_id in sorted(ledger_ids):
        try:
            await store.ledgers.get(ledger_id)
        except NoSuchLedger:
            continue
        raise ArgumentError(f"log {name!r}: ledger {ledger_id} was restored meanwhile, and is not given up; examine the log again")


async def _lose_open(store: HeadStore, name: str, found: Examination, end: int | None, by: str) -> None:
    assert found.head.open is not None, "the open segment is lost"
    gone = found.head.open.ledger_id
    owner = Owner(check_text("the name of the operator", by), store.token())
    await claim(store, name, found.head.log_id, owner, take_over=False)
    try:

        async def decide(stored: StoredHead) -> HeadDecision | None:
            if stored.head.open is None or stored.head.open.ledger_id != gone:
                return None
            return lost_segments.lose_open(stored.head, found.next_offset if end is None else end, owner, store.limits), ()

        await store.change(name, decide, log_id=found.head.log_id)
    finally:
        await release(store, name, owner)
