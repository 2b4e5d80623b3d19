"""Changes of a head whose ledgers are gone: their offsets remain a listed hole, and no offset is used twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from triplicate.errors import ArgumentError
from triplicate.log.core import head_changes
from triplicate.log.core.head import Head, LogSegment, Owner, Page, SegmentState
from triplicate.log.core.head_changes import Change, PageLimits
from triplicate.log.core.payload import ENTRY_LIMIT_BYTES, HEADER_SIZE

RECORDS_PER_ENTRY = ENTRY_LIMIT_BYTES // 4
"""Upper bound of the records of an entry: each occupies four bytes of offsets at least."""
ENTRIES_ON_THEIR_WAY = 1_000_000
"""A writer sends no more entries beyond the size at which a segment rolls: the bound of its window."""
HAVE_LEDGERS = (SegmentState.OPEN, SegmentState.CLOSED)


def end_beyond_doubt(head: Head) -> int:
    """An offset that no record of the open segment can have reached, however much was written into it."""
    assert head.open is not None, "only an open segment has an unknown end"
    entries = head.settings.roll_size_bytes // HEADER_SIZE + 1 + ENTRIES_ON_THEIR_WAY
    return head.open.first_offset + entries * RECORDS_PER_ENTRY


def lose_closed(head: Head, ledger_ids: frozenset[int], pages: Mapping[int, Page], token: str) -> Change:
    """Mark closed segments as lost. They keep their place, so offsets stay what they are.

    Args:
        pages: at least those that list the segments.
    """

    def mark(segment: LogSegment) -> LogSegment:
        if segment.ledger_id not in ledger_ids or segment.state not in HAVE_LEDGERS:
            return segment
        return replace(segment, state=SegmentState.LOST, size_bytes=0, reduced=None)

    return head_changes.rewrite(replace(head, token=token), pages, mark, lambda reference: reference.page in pages)


def lose_open(head: Head, end: int, owner: Owner, limits: PageLimits) -> Change:
    """Begin a new epoch without the open segment; the log continues at `end`.

    Args:
        end: no known record of the segment has this offset or a later one. At the segment's first offset, the segment leaves the list.

    Raises:
        ArgumentError: the end lies before the segment's first offset.
    """
    assert head.open is not None, "the open segment is what is lost"
    if end < head.open.first_offset:
        raise ArgumentError(f"the open segment begins at offset {head.open.first_offset}; it cannot have ended at {end}")
    records = end - head.open.first_offset
    state = SegmentState.LOST if records else SegmentState.DELETING
    return head_changes.take_over(head, replace(head.open, records=records, state=state, reduced=None), None, owner, owner.token, limits)
