"""Segments as ledgers: making one, closing and counting one that somebody else left open."""

from __future__ import annotations

from triplicate.config.log import LogClientSettings, LogSettings
from triplicate.errors import ArgumentError, NoSuchLedger
from triplicate.ledger import DigestType
from triplicate.log.core.head import Segment, closed_segment
from triplicate.log.core.payload import EntryHeader, decode_header
from triplicate.log.ledgers import LedgerAppender, LedgerClient, LedgerView
from triplicate.runtime import fault_point


def password_of(settings: LogClientSettings) -> bytes:
    """The password of all ledgers of logs."""
    return settings.ledger_password.encode()


@fault_point("log.create_ledger")
async def create_ledger(client: LedgerClient, settings: LogClientSettings, log: LogSettings, custom: dict[str, str]) -> LedgerAppender:
    """A new ledger for a log.

    Args:
        custom: what its metadata says about it, beside `application` and `created`, which are added here.

    Raises:
        NotEnoughBookies: fewer writable bookies than the log's ensemble size.
    """
    created = client.host.clock.wall_us() // 1000
    facts = {"application": "triplicate", **custom, "created": str(created)}
    return await client.create(
        ensemble_size=log.ensemble_size,
        write_quorum=log.write_quorum,
        ack_quorum=log.ack_quorum,
        digest_type=DigestType.CRC32C,
        password=password_of(settings),
        custom={key: value.encode() for key, value in facts.items()},
    )


@fault_point("log.recover_segment")
async def recover_segment(client: LedgerClient, settings: LogClientSettings, segment: Segment) -> Segment:
    """Fence a segment's ledger, close it, and count its records.

    Returns:
        The segment as it is to be listed: closed, or marked for deletion if it holds no records.

    Raises:
        NoSuchLedger: its ledger is gone, so its records are lost. RecoveryFailed, ReadFailed: bookies are missing.
    """
    try:
        view = await client.recover(segment.ledger_id, password=password_of(settings))
    except NoSuchLedger as error:
        error.add_note(f"it is the open segment from offset {segment.first_offset}: somebody deleted the ledger beneath the log")
        raise
    try:
        return await count_segment(view, segment)
    finally:
        await view.aclose()


async def count_segment(view: LedgerView, segment: Segment) -> Segment:
    """The segment with what its closed ledger holds: the header of the last entry says how many records there are.

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
