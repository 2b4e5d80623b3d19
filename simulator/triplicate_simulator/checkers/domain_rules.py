"""The rules of copies and failure domains while bookies are lost, replaced and filled again.

The facts are the entries that bookies held at decisive moments, the racks of the bookies that the metadata named, and the segments of logs
in the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from triplicate_simulator.checkers.history import Checker, History, Verdict

SHOWN = 5
"""Entries that one finding names."""


@dataclass(frozen=True, slots=True)
class CopiesCounted:
    """The acknowledged entries of a ledger were examined, at a loss or at a change of its metadata.

    Args:
        entries: number of entries that were examined.
        without_copy: entries that no bookie holds which the metadata names for them, and none that is down may hold.
    """

    time_s: float
    ledger_id: int
    entries: int
    without_copy: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EnsembleChosen:
    """A client chose the bookies of a segment, or one of them, while all of them ran.

    Args:
        racks, regions: least number of each in a write set.
        racks_wanted, regions_wanted: least number that the policy and the running bookies allow; 1 where nothing is demanded.
    """

    time_s: float
    ledger_id: int
    ensemble: tuple[str, ...]
    racks: int
    regions: int
    racks_wanted: int = 1
    regions_wanted: int = 1


@dataclass(frozen=True, slots=True)
class SegmentRaised:
    """A process closed a ledger with all copies of a log's segment, which is to replace one with fewer.

    Args:
        missing: bookies that the metadata names, with the entries that they lacked at that moment.
    """

    time_s: float
    ledger_id: int
    missing: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class SegmentKept:
    """A closed segment of a log in the end.

    Args:
        write_quorum: of its ledger.
        wanted: the write quorum that the log asks for, and that the remaining machines can hold.
        is_reduced: whether the list says that it has fewer copies.
    """

    time_s: float
    log: str
    ledger_id: int
    write_quorum: int
    wanted: int
    is_reduced: bool


@dataclass(frozen=True, slots=True)
class LimboEnded:
    """The metadata say that a bookie with replaced disks was filled again.

    Args:
        lacking: closed ledgers that named it, with the number of entries that it lacked at that moment.
    """

    time_s: float
    bookie_id: str
    lacking: tuple[tuple[int, int], ...]


def acknowledged_entries_always_have_a_copy(history: History, verdict: Verdict) -> None:
    """While at most ack quorum - 1 copies are lost at a time, each acknowledged entry has a copy on a bookie that is named for it."""
    for counted in history.of(CopiesCounted):
        verdict.decided += counted.entries > 0
        if counted.without_copy:
            shown = ", ".join(str(entry_id) for entry_id in counted.without_copy[:SHOWN])
            verdict.violations.append(
                f"at {counted.time_s:.6f} no bookie had {len(counted.without_copy)} acknowledged entries of ledger "
                f"{counted.ledger_id}: {shown}"
            )


def ensembles_keep_their_domains(history: History, verdict: Verdict) -> None:
    """The bookies of each entry are in as many racks and regions as is enforced, or as is preferred where nothing is wrong."""
    for chosen in history.of(EnsembleChosen):
        verdict.decided += chosen.racks_wanted > 1
        for number, wanted, kind in (
            (chosen.racks, chosen.racks_wanted, "racks"),
            (chosen.regions, chosen.regions_wanted, "regions"),
        ):
            if number < wanted:
                verdict.violations.append(
                    f"the bookies {', '.join(chosen.ensemble)} of ledger {chosen.ledger_id} at {chosen.time_s:.6f} are in {number} {kind} "
                    f"for some entry, not in {wanted}"
                )


def raised_segments_are_complete(history: History, verdict: Verdict) -> None:
    """A ledger that raises the copies of a segment has all of them when it is closed, and in the end no segment of a log lacks copies."""
    for raised in history.of(SegmentRaised):
        verdict.decided += 1
        if raised.missing:
            shown = ", ".join(f"entry {entry_id} on {bookie_id}" for bookie_id, entry_id in raised.missing[:SHOWN])
            verdict.violations.append(
                f"ledger {raised.ledger_id} was closed at {raised.time_s:.6f} with all copies of a segment, without "
                f"{len(raised.missing)} of them: {shown}"
            )
    for kept in history.of(SegmentKept):
        verdict.decided += 1
        if kept.is_reduced or kept.write_quorum < kept.wanted:
            verdict.violations.append(
                f"the segment of log {kept.log} in ledger {kept.ledger_id} has {kept.write_quorum} of {kept.wanted} copies in the end"
                + (", and is listed with fewer" if kept.is_reduced else "")
            )


def limbo_ends_with_the_refill(history: History, verdict: Verdict) -> None:
    """The limbo of a bookie with replaced disks ends when it has the entries of all closed ledgers that named it before."""
    for ended in history.of(LimboEnded):
        verdict.decided += 1
        if ended.lacking:
            lacking = ", ".join(f"{number} entries of ledger {ledger_id}" for ledger_id, number in ended.lacking[:SHOWN])
            verdict.violations.append(f"the limbo of {ended.bookie_id} ended at {ended.time_s:.6f} without {lacking}")


DOMAIN_CHECKERS: dict[str, Checker] = {
    check.__name__: check
    for check in (
        acknowledged_entries_always_have_a_copy,
        ensembles_keep_their_domains,
        raised_segments_are_complete,
        limbo_ends_with_the_refill,
    )
}
"""These checkers, by name."""
