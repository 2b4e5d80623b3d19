"""Which positions of an ensemble hold an entry, and what a number of answers proves.

E = ensemble size, Qw = write quorum, Qa = ack quorum, E >= Qw >= Qa >= 1. Source: BookKeeper `RoundRobinDistributionSchedule`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from triplicate.errors import ArgumentError

LARGEST_ENSEMBLE = 2**31 - 1
"""The metadata's formats hold the sizes in 32 bits."""


def check_quorums(ensemble_size: int, write_quorum: int, ack_quorum: int) -> None:
    """Refuse sizes that no ledger can have.

    Raises:
        ArgumentError: one is not a whole number, or E >= Qw >= Qa >= 1 does not hold; the message names it.
    """
    for name, size in (("ensemble_size", ensemble_size), ("write_quorum", write_quorum), ("ack_quorum", ack_quorum)):
        if not isinstance(size, int) or isinstance(size, bool):
            raise ArgumentError(f"{name} is {size!r}; it must be a whole number")
    if not 1 <= ensemble_size <= LARGEST_ENSEMBLE:
        raise ArgumentError(f"ensemble_size is {ensemble_size}; it must be at least 1 and at most {LARGEST_ENSEMBLE}")
    if not 1 <= write_quorum <= ensemble_size:
        raise ArgumentError(f"write_quorum is {write_quorum}; it must be at least 1 and at most ensemble_size ({ensemble_size})")
    if not 1 <= ack_quorum <= write_quorum:
        raise ArgumentError(f"ack_quorum is {ack_quorum}; it must be at least 1 and at most write_quorum ({write_quorum})")


@lru_cache(maxsize=256)
def write_sets(ensemble_size: int, write_quorum: int) -> tuple[tuple[int, ...], ...]:
    """The E different write sets; entry e has the one at index e mod E. For loops that ask for every entry."""
    return tuple(tuple((first + step) % ensemble_size for step in range(write_quorum)) for first in range(ensemble_size))


def write_set(entry_id: int, ensemble_size: int, write_quorum: int) -> tuple[int, ...]:
    """Positions that hold the entry, in the order in which a reader tries them: (e + i) mod E for i below Qw."""
    return write_sets(ensemble_size, write_quorum)[entry_id % ensemble_size]


def is_covered(unknown: Collection[int], ensemble_size: int, write_quorum: int, ack_quorum: int) -> bool:
    """Whether no entry can have reached its ack quorum on bookies of unknown state alone.

    Args:
        unknown: positions of the ensemble that gave no answer, or one that says nothing (anything but an entry, no entry, no ledger).

    Returns:
        True when every Qw consecutive positions contain fewer than Qa unknown ones. Counting over the whole ensemble instead
        is right only while E = Qw.
    """
    return all(sum(position in unknown for position in positions) < ack_quorum for positions in write_sets(ensemble_size, write_quorum))


def is_endangered(absent: Collection[int], ensemble_size: int, write_quorum: int, ack_quorum: int) -> bool:
    """Whether some entry can no longer reach its ack quorum.

    Args:
        absent: positions of the ensemble whose bookie takes no entries.

    Returns:
        True when some Qw consecutive positions contain more than Qw - Qa absent ones.
    """
    spared = write_quorum - ack_quorum
    return any(sum(position in absent for position in positions) > spared for positions in write_sets(ensemble_size, write_quorum))


def absent_answers_needed(write_quorum: int, ack_quorum: int) -> int:
    """How many replicas must say "no entry" or "no ledger" to prove that an entry was never acknowledged: Qw - Qa + 1."""
    return write_quorum - ack_quorum + 1
