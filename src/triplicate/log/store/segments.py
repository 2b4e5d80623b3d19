"""The ledgers of segments: creating one, recovering and counting one that another writer left open, and whether that is possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from triplicate.config.log_settings import LogClientSettings, LogSettings
from triplicate.errors import ArgumentError, NoSuchLedger, NotEnoughBookies
from triplicate.ledger import DigestType
from triplicate.log.core.head import Head, LogSegment, Quorums, closed_segment
from triplicate.log.core.payload import EntryHeader, decode_header
from triplicate.log.core.quorums import (
    degraded_quorums,
    full_quorums,
    others_may_be_needed,
    placeable_copies,
    quorums_for,
    reduced_quorums,
    suffice_for_take_over,
)
from triplicate.log.store.ledger_ports import LedgerAppender, LedgerClient, LedgerView
from triplicate.metadata import BookieServiceInfo, machine_of
from triplicate.runtime import fault_point

CREATE_ATTEMPTS = 5
"""How often a segment's quorums are chosen again because bookies came or went before the creation."""


def password_of(settings: LogClientSettings) -> bytes:
    """The password of all ledgers of logs."""
    return settings.ledger_password.encode()


async def create_segment(
    client: LedgerClient, settings: LogClientSettings, log: LogSettings, custom: dict[str, str], *, full: bool = False
) -> tuple[LedgerAppender, Quorums | None]:
    """Create a ledger for a log with all copies, or with as many as there are bookies, but at least the ack quorum.

    Args:
        full: only with all copies.

    Returns:
        The ledger, and its quorums if they are smaller than the log asks for.

    Raises:
        NotEnoughBookies: fewer writable bookies than the ack quorum; with `full`, than the log's ensemble size.
    """
    copies = full_quorums(log)
    for attempt in range(CREATE_ATTEMPTS):
        try:
            ledger = await create_ledger(client, settings, log, custom, copies)
        except NotEnoughBookies:
            if full or attempt == CREATE_ATTEMPTS - 1:
                raise
            copies_most = placeable_copies(machines_of(await client.metadata.bookies.writable()))
            found = quorums_for(log, copies_most, client.min_ack_domains)
            if found is None:
                raise
            copies = found
        else:
            reduced = reduced_quorums(log, copies)
            if reduced is not None:
                client.host.trace(
                    "log.reduced",
                    log=custom.get("log", ""),
                    ledger=ledger.ledger_id,
                    ensemble=copies.ensemble_size,
                    write=copies.write_quorum,
                )
            return ledger, reduced
    raise AssertionError("unreachable")


def machines_of(bookies: Mapping[str, BookieServiceInfo]) -> list[str]:
    """The machine of each bookie."""
    return [machine_of(bookie_id, info) for bookie_id, info in bookies.items()]


@fault_point("log.create_ledger")
async def create_ledger(
    client: LedgerClient, settings: LogClientSettings, log: LogSettings, custom: dict[str, str], copies: Quorums | None = None
) -> LedgerAppender:
    """Create a ledger for a log.

    Args:
        custom: its custom metadata; `application` and `created` are added.
        copies: its quorums; None for those of the log.

    Raises:
        NotEnoughBookies: fewer writable bookies than the ensemble size.
    """
    created = client.host.clock.wall_us() // 1000
    facts = {"application": "triplicate", **custom, "created": str(created)}
    copies = copies if copies is not None else full_quorums(log)
    return await client.create(
        ensemble_size=copies.ensemble_size,
        write_quorum=copies.write_quorum,
        ack_quorum=log.ack_quorum,
        digest_type=DigestType.CRC32C,
        password=password_of(settings),
        custom={key: value.encode() for key, value in facts.items()},
    )


@fault_point("log.recover_segment")
async def recover_segment(client: LedgerClient, settings: LogClientSettings, log: LogSettings, segment: LogSegment) -> LogSegment:
    """Fence a segment's ledger, close it, and count its records.

    Returns:
        The segment as it is to be listed: closed, or marked for deletion if it holds no records; reduced if its last entries could not
        be copied to every bookie that should have them.

    Raises:
        NoSuchLedger: its ledger is gone, so its records are lost. RecoveryFailed, ReadFailed: bookies are missing.
    """
    try:
        view = await client.recover(segment.ledger_id, password=password_of(settings))
    except NoSuchLedger as error:
        error.add_note(f"it is the open segment from offset {segment.first_offset}: the ledger was deleted although the log lists it")
        raise
    try:
        counted = await count_segment(view, segment)
    finally:
        await view.aclose()
    if view.missing_bookies and counted.reduced is None:
        return replace(counted, reduced=degraded_quorums(log))
    return counted


async def can_recover(client: LedgerClient, head: Head) -> bool:
    """Whether enough bookies answer this process to recover the open segment of a log, and to acknowledge entries of the next one.

    Nothing is fenced. Also true for a log without an open segment, where there is nothing to recover.

    Raises:
        NoSuchLedger: the ledger of the open segment is gone.
    """
    if head.open is None:
        return True
    segment, ack_quorum = await client.metadata_of(head.open.ledger_id), head.settings.ack_quorum
    bookie_ids = list(segment.last_segment.ensemble)
    if others_may_be_needed(segment, ack_quorum):
        others = [bookie_id for bookie_id in sorted(await client.metadata.bookies.writable()) if bookie_id not in bookie_ids]
        bookie_ids += others[:ack_quorum]
    return await client.bookies_answer(head.open.ledger_id, bookie_ids, partial(suffice_for_take_over, segment, ack_quorum))


async def count_segment(view: LedgerView, segment: LogSegment) -> LogSegment:
    """Complete a segment from its closed ledger. The header of the last entry gives the number of records.

    Raises:
        ArgumentError: the ledger is not closed. FormatError: its entries are not those of a log.
    """
    if not view.is_closed:
        raise ArgumentError(f"ledger {view.ledger_id} is not closed and cannot be counted")
    last_entry = view.last_add_confirmed
    if last_entry < 0:
        return closed_segment(segment, records=0, size_bytes=0, last_entry=-1, min_time_us=0, max_time_us=0)
    last = await read_header(view, last_entry)
    first = last if last_entry == 0 else await read_header(view, 0)
    return closed_segment(
        segment,
        records=last.end_index,
        size_bytes=view.metadata.length,
        last_entry=last_entry,
        min_time_us=first.wall_time_us,
        max_time_us=last.wall_time_us,
    )


async def read_header(view: LedgerView, entry_id: int) -> EntryHeader:
    """The header of one entry."""
    (entry,) = await view.read(entry_id, entry_id)
    return decode_header(entry.payload)
