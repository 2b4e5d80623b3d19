"""The promises of bookies about kept and lost data: replaced disks, and ledgers that were deleted and restored."""

from __future__ import annotations

from triplicate_simulator.checkers.history import History, Verdict
from triplicate_simulator.checkers.ledger_promises import (
    Denied,
    MetadataWritten,
    Place,
    Read,
    Undeleted,
    Wiped,
    acknowledged,
    deleted,
    entry_name,
)

Bookie = tuple[str, int]
"""A bookie and a ledger."""


def replaced_bookies_deny_nothing(history: History, verdict: Verdict) -> None:
    """A bookie that lost its disks never answers "no such entry" about one that it may have held.

    It may have held an entry if the metadata named it for that entry when the disks were lost, and ever since. A bookie that was left out
    of a segment meanwhile had no acknowledgement in it that counts.
    """
    wiped: dict[str, None] = {}
    named: dict[int, MetadataWritten] = {}
    suspects: dict[Bookie, list[MetadataWritten]] = {}
    gone = deleted(history)
    for event in history.events:
        if isinstance(event, MetadataWritten):
            named[event.ledger_id] = event
            for bookie in wiped:
                if (bookie, event.ledger_id) in suspects:
                    suspects[bookie, event.ledger_id].append(event)
        elif isinstance(event, Wiped):
            wiped[event.bookie_id] = None
            for ledger_id, written in named.items():
                suspects.setdefault((event.bookie_id, ledger_id), [written])
        elif isinstance(event, Denied) and (event.bookie_id, event.ledger_id) in suspects:
            versions = suspects[event.bookie_id, event.ledger_id]
            if event.ledger_id in gone or not all(event.bookie_id in _holders(version, event.entry_id) for version in versions):
                continue
            what = entry_name((event.ledger_id, event.entry_id))
            verdict.violations.append(f"{event.bookie_id}, whose disks were lost, said at {event.time_s:.6f} that it has no {what}")
    verdict.decided += len(suspects)


def _holders(written: MetadataWritten, entry_id: int) -> list[str]:
    """The bookies that a version of the metadata names for an entry."""
    ensemble_size, write_quorum, _ = written.sizes
    ensemble = [bookies for first, bookies in written.segments if first <= entry_id][-1]
    return [ensemble[(entry_id + number) % ensemble_size] for number in range(write_quorum)]


def undeleted_ledgers_are_whole(history: History, verdict: Verdict) -> None:
    """A ledger that was restored in time, and not deleted again, has in the end every entry that was acknowledged before."""
    back: dict[int, None] = {event.ledger_id: None for event in history.of(Undeleted) if event.in_time}
    gone = deleted(history)
    final: set[Place] = set()
    for event in history.of(Read):
        if event.reader == history.final_reader and event.payload is not None:
            final.add((event.ledger_id, event.entry_id))
    for place in acknowledged(history) if history.final_reader is not None else ():
        if place[0] in back and place[0] not in gone:
            verdict.decided += 1
            if place not in final:
                verdict.violations.append(f"{entry_name(place)} is gone, although the ledger was restored in time")
