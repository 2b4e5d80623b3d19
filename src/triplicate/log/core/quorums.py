"""How many copies a segment gets, which segments have fewer than their log asks for, and which bookies a take-over needs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from triplicate.config.log_settings import LogSettings
from triplicate.ledger import LedgerMetadata, absent_answers_needed, is_covered
from triplicate.log.core.head import Quorums


def full_quorums(log: LogSettings) -> Quorums:
    """The quorums that a log asks for."""
    return Quorums(log.ensemble_size, log.write_quorum)


def quorums_for(log: LogSettings, writable: int, min_ack_domains: int = 1) -> Quorums | None:
    """The quorums of a new segment: the ensemble shrinks first, then the write quorum.

    Args:
        writable: number of writable bookies or, where some share a machine, `placeable_copies`.
        min_ack_domains: least number of fault domains in which an entry is acknowledged.

    Returns:
        None if there are fewer bookies than the ack quorum, or fewer than the domains. Both stay, so an acknowledged record always has as
        many copies in as many domains.
    """
    ensemble_size = min(log.ensemble_size, writable)
    write_quorum = min(log.write_quorum, ensemble_size)
    least = max(log.ack_quorum, min(min_ack_domains, log.write_quorum))
    return Quorums(ensemble_size, write_quorum) if write_quorum >= least else None


def placeable_copies(machines: Sequence[str]) -> int:
    """How many copies of an entry the writable bookies can hold: two never share a machine unless all bookies do.

    Args:
        machines: the machine of each writable bookie.
    """
    different = len(set(machines))
    return different if different > 1 else len(machines)


def reduced_quorums(log: LogSettings, copies: Quorums) -> Quorums | None:
    """The quorums that the list records for a segment: None if they are at least the log's settings."""
    full = full_quorums(log)
    return copies if copies.ensemble_size < full.ensemble_size or copies.write_quorum < full.write_quorum else None


def reduced_quorums_of(log: LogSettings, metadata: LedgerMetadata) -> Quorums | None:
    """As `reduced_quorums`, of a ledger that exists."""
    return reduced_quorums(log, Quorums(metadata.ensemble_size, metadata.write_quorum))


def degraded_quorums(log: LogSettings) -> Quorums | None:
    """The quorums that the list records for a segment that continued without a bookie of its ensemble: an entry may have only as many
    copies as the ack quorum. None if that is the write quorum."""
    return Quorums(log.ensemble_size, log.ack_quorum) if log.ack_quorum < log.write_quorum else None


def suffice_for_take_over(open_segment: LedgerMetadata, ack_quorum: int, answered: Collection[str]) -> bool:
    """Whether the bookies that answer suffice to lead a log: its open segment can be recovered, and entries that follow be acknowledged.

    The recovery alone needs fewer bookies than an ack quorum where that is more than half of the copies. A process that is cut off with
    the bookie on its own machine would then seem to be able to lead.

    Args:
        ack_quorum: of the segment that follows.
        answered: bookies that have answered, also others than those of the open segment.
    """
    ensemble = open_segment.last_segment.ensemble
    silent = [position for position, bookie_id in enumerate(ensemble) if bookie_id not in answered]
    is_recoverable = is_covered(silent, len(ensemble), open_segment.write_quorum, open_segment.ack_quorum)
    return is_recoverable and len(answered) >= ack_quorum


def others_may_be_needed(open_segment: LedgerMetadata, ack_quorum: int) -> bool:
    """Whether the bookies with which the open segment can be recovered may be fewer than the ack quorum of the one that follows."""
    return absent_answers_needed(open_segment.write_quorum, open_segment.ack_quorum) < ack_quorum
