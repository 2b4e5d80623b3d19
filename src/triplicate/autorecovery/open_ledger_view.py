"""One look at an open ledger whose writer may be alive: its metadata, the last entries on its bookies, and the disks that were replaced."""

from __future__ import annotations

from collections.abc import Collection

from triplicate.autorecovery.core.fragments import LedgerFragment
from triplicate.autorecovery.core.ledger_copies import expected_fragments
from triplicate.autorecovery.core.open_refill import LastStored
from triplicate.autorecovery.core.writer_presence import OpenLedgerView
from triplicate.client import WRITER_AWAITED, BookieCopies, Client
from triplicate.errors import BookieError, CorruptionError
from triplicate.ledger import EntryCodec, LedgerMetadata, is_covered
from triplicate.metadata import ClusterMetadata, Versioned, may_have_lost_entries
from triplicate.runtime import Clock, map_bounded

VIEWS_AT_ONCE = 8
"""Bookies that are asked for their last entry at a time."""


def awaits_writer(metadata: LedgerMetadata) -> bool:
    """Whether the ledger waits for its first writer, and so has no entries. See `Client.take_up`."""
    return not metadata.is_closed and all(metadata.custom.get(name) == value for name, value in WRITER_AWAITED.items())


async def view_open_ledger(
    ledger_id: int, metadata: LedgerMetadata, copies: BookieCopies, clock: Clock, silent: Collection[str]
) -> OpenLedgerView:
    """A look at the metadata, and at the bookies of the last segment.

    Args:
        silent: bookies that are not asked.
    """
    codec = EntryCodec(ledger_id, metadata.digest_type, metadata.password)

    async def last_entry_id(bookie_id: str) -> int | None:
        """-1 if it has none, None if it did not answer."""
        try:
            found = await copies.last_entry_id(codec, bookie_id)
        except (BookieError, CorruptionError):
            return None
        return -1 if found is None else found

    segment = metadata.last_segment
    asked = [bookie_id for bookie_id in segment.ensemble if bookie_id not in silent]
    found = await map_bounded(last_entry_id, asked, most=VIEWS_AT_ONCE, name=f"last entries of ledger {ledger_id}")
    answers = {bookie_id: entry_id for bookie_id, entry_id in zip(asked, found, strict=True) if entry_id is not None}
    unknown = [position for position, bookie_id in enumerate(segment.ensemble) if bookie_id not in answers]
    return OpenLedgerView(
        metadata.state,
        segment,
        max(answers.values(), default=-1),
        clock.monotonic(),
        is_covered(unknown, len(segment.ensemble), metadata.write_quorum, metadata.ack_quorum),
    )


async def last_stored(copies: BookieCopies, codec: EntryCodec, metadata: LedgerMetadata, besides: str) -> dict[str, LastStored]:
    """The last entries on the bookies of the last segment that answer, without one bookie."""

    async def ask(bookie_id: str) -> LastStored | None:
        try:
            last = await copies.last_entry(codec, bookie_id)
        except (BookieError, CorruptionError):
            return None
        return LastStored(-1, -1) if last is None else LastStored(last.entry_id, last.last_add_confirmed)

    others = [bookie_id for bookie_id in metadata.last_segment.ensemble if bookie_id != besides]
    found = await map_bounded(ask, others, most=VIEWS_AT_ONCE, name=f"last entries of ledger {codec.ledger_id}")
    return {bookie_id: last for bookie_id, last in zip(others, found, strict=True) if last is not None}


async def confirmed_fragments(
    client: Client, ledger_id: int, metadata: LedgerMetadata, bookie_ids: Collection[str]
) -> list[LedgerFragment]:
    """The fragments of some bookies in the last segment of an open ledger, and in those that follow by now, up to the last-add-confirmed.

    Raises:
        ReadFailed: too few bookies answered to know it. NoSuchLedger: the ledger was deleted. Unauthorized: the metadata has no password.
    """
    async with await client.open(ledger_id, password=metadata.password) as reader:
        return [
            fragment
            for fragment in expected_fragments(reader.metadata, reader.last_add_confirmed)
            if fragment.bookie_id in bookie_ids and fragment.first_entry_id >= metadata.last_segment.first_entry_id
        ]


async def doubt_of_replaced_disks(cluster: ClusterMetadata, ledger_id: int, found: Versioned) -> str:
    """Why bookies whose disks were replaced keep an open ledger from being recovered and refilled, and what to do; empty if they do not.

    An entry that an ack quorum of replaced disks has confirmed may be on no other bookie. Then only the writer knows the ledger's end.
    """
    segment, replaced = found.value.last_segment, []
    for position, bookie_id in enumerate(segment.ensemble):
        incarnation = await cluster.incarnations.get(bookie_id)
        if not incarnation.visited and await may_have_lost_entries(cluster, bookie_id, incarnation, ledger_id, found):
            replaced.append(position)
    if is_covered(replaced, len(segment.ensemble), found.value.write_quorum, found.value.ack_quorum):
        return ""
    names = ", ".join(segment.ensemble[position] for position in replaced)
    return (
        f"; entries may have been confirmed by {names} alone, whose disks were replaced: have the writer close the ledger, or give such "
        "entries up by `triplicate bookie format --visited` on one of them"
    )
