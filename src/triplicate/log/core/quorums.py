"""How many copies a segment gets, and which segments have fewer than their log asks for."""

from __future__ import annotations

from triplicate.config.log_settings import LogSettings
from triplicate.ledger import LedgerMetadata
from triplicate.log.core.head import Quorums


def full_quorums(log: LogSettings) -> Quorums:
    """The quorums that a log asks for."""
    return Quorums(log.ensemble_size, log.write_quorum)


def quorums_for(log: LogSettings, writable: int) -> Quorums | None:
    """The quorums of a new segment while so many bookies are writable: the ensemble shrinks first, then the write quorum.

    Returns:
        None if there are fewer bookies than the ack quorum. What is acknowledged has as many copies as always, so the ack quorum stays.
    """
    ensemble_size = min(log.ensemble_size, writable)
    write_quorum = min(log.write_quorum, ensemble_size)
    return Quorums(ensemble_size, write_quorum) if write_quorum >= log.ack_quorum else None


def reduced_quorums(log: LogSettings, copies: Quorums) -> Quorums | None:
    """What the list says of a segment with these quorums: None if they are what the log asks for, or more."""
    full = full_quorums(log)
    return copies if copies.ensemble_size < full.ensemble_size or copies.write_quorum < full.write_quorum else None


def reduced_quorums_of(log: LogSettings, metadata: LedgerMetadata) -> Quorums | None:
    """As `reduced_quorums`, of a ledger that exists."""
    return reduced_quorums(log, Quorums(metadata.ensemble_size, metadata.write_quorum))


def degraded_quorums(log: LogSettings) -> Quorums | None:
    """What the list says of a segment that went on while a bookie of its ensemble was away: an entry may have no more copies than the
    ack quorum. None where that is the write quorum."""
    return Quorums(log.ensemble_size, log.ack_quorum) if log.ack_quorum < log.write_quorum else None
