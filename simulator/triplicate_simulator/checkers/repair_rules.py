"""The rules of self-healing: copies of lost bookies are made again, and nothing else is changed or disturbed by that.

The facts are versions of metadata, the entries that a bookie held when the metadata named it, decisions of workers about writers, and in
the end every copy of every entry.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from triplicate_simulator.checkers.domain_rules import DOMAIN_CHECKERS
from triplicate_simulator.checkers.history import Checker, History, Verdict
from triplicate_simulator.checkers.ledger_checkers import LEDGER_CHECKERS
from triplicate_simulator.checkers.ledger_promises import Acknowledged, MetadataWritten, Place, Sent, entry_name
from triplicate_simulator.checkers.log_rules import LOG_CHECKERS

GRACE_SHARE = 0.97
"""Clocks of nodes differ by up to 1 %, so a grace period may be shorter than it says."""
SHOWN = 5
"""Entries that one finding names."""
RANKS = {"open": 0, "in recovery": 1, "closed": 2}

Segment = tuple[int, tuple[str, ...]]
"""Its first entry, and its ensemble."""
Plan = tuple[int, int, tuple[str, ...], tuple[str, ...]]
"""A ledger, the first entry of one of its segments, and the ensembles before and after."""


@dataclass(frozen=True, slots=True)
class CopiesNamed:
    """The metadata named a bookie in the place of another, in a segment whose end was fixed."""

    time_s: float
    bookie_id: str
    ledger_id: int
    first_entry_id: int
    last_entry_id: int
    missing: tuple[int, ...]
    """The entries that the bookie should have had at that moment, and did not."""


@dataclass(frozen=True, slots=True)
class WriterHeldGone:
    """A worker decided that the writer of an open ledger is gone, and fences the ledger.

    Args:
        looked_s: when its last look at the ledger began.
        time_s: when it decided.
        grace_s: time without any change after which it may decide so.
    """

    looked_s: float
    time_s: float
    worker: str
    ledger_id: int
    grace_s: float


@dataclass(frozen=True, slots=True)
class Rearranged:
    """A worker has copied what it needs to replace several bookies of one segment at once."""

    time_s: float
    worker: str
    ledger_id: int
    first_entry_id: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CopyFound:
    """The copy of an entry on one bookie of its write set, after everything was repaired.

    Args:
        body: the complete entry with header and digest; None if the bookie has no intact copy, and `problem` says why.
    """

    ledger_id: int
    entry_id: int
    bookie_id: str
    machine: str
    body: bytes | None
    payload: bytes | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class LedgerHealed:
    """A closed ledger whose copies were all examined in the end."""

    ledger_id: int
    last_entry_id: int
    write_quorum: int
    is_of_log: bool = False
    """Whether a log lists it."""


@dataclass(frozen=True, slots=True)
class MarkDeleted:
    """A worker deleted the mark of an under-replicated ledger."""

    time_s: float
    ledger_id: int
    lacking: tuple[str, ...]
    """Bookies of the mark that still lacked copies, of those that a worker must have seen when it locked the ledger."""


@dataclass(frozen=True, slots=True)
class BookieDecommissioned:
    """The cookie of a bookie was removed at the end of its decommission."""

    time_s: float
    bookie_id: str
    named_by: tuple[int, ...]
    """Ledgers that named it for entries, as every client must have known by then."""
    alone: tuple[Place, ...]
    """Entries of closed ledgers that it held, and none of the running bookies that the metadata names for them."""


@dataclass(frozen=True, slots=True)
class StoredInRacks:
    """Where an entry was when its append was acknowledged.

    Args:
        racks: of the bookies that the metadata names for it and that had it, or may have had it because they were down.
        needed: least number of racks in which an entry of the ledger is acknowledged.
    """

    time_s: float
    ledger_id: int
    entry_id: int
    racks: tuple[str, ...]
    needed: int


def ledgers_have_full_copies(history: History, verdict: Verdict) -> None:
    """After quiet every entry of every ledger has its full copies, on different machines, all intact and with one payload.

    Copies are equal byte for byte where the writer closed the ledger itself: a recovery writes entries again with a header of its own.
    """
    copies: dict[Place, list[CopyFound]] = {}
    for copy in history.of(CopyFound):
        copies.setdefault((copy.ledger_id, copy.entry_id), []).append(copy)
    recovered = {written.ledger_id for written in history.of(MetadataWritten) if written.state == "in recovery"}
    payloads = {(sent.ledger_id, sent.entry_id): sent.payload for sent in history.of(Sent)}
    for ledger in history.of(LedgerHealed):
        for entry_id in range(ledger.last_entry_id + 1):
            place = (ledger.ledger_id, entry_id)
            verdict.decided += 1
            found = copies.get(place, [])
            # The rules of logs judge the records of a log's writer, by offset.
            sent = found[0].payload if ledger.is_of_log and found else payloads.get(place)
            wrong = _wrong_copies(found, ledger.write_quorum, sent, ledger.ledger_id in recovered)
            if wrong:
                verdict.violations.append(f"{entry_name(place)} {wrong}")


def _wrong_copies(copies: list[CopyFound], write_quorum: int, payload: bytes | None, was_recovered: bool) -> str:
    bad = [f"{copy.bookie_id}: {copy.problem}" for copy in copies if copy.body is None]
    if bad or len(copies) != write_quorum:
        return f"has {len(copies) - len(bad)} of {write_quorum} copies; {'; '.join(bad)}"
    machines = [copy.machine for copy in copies]
    if len(dict.fromkeys(machines)) < len(machines):
        return f"has copies on one machine: {', '.join(f'{copy.bookie_id} on {copy.machine}' for copy in copies)}"
    if any(copy.payload != payload for copy in copies):
        return f"is not what its writer sent on {', '.join(copy.bookie_id for copy in copies if copy.payload != payload)}"
    if not was_recovered and len(dict.fromkeys(copy.body for copy in copies)) > 1:
        return "has copies that differ in their headers"
    return ""


def named_copies_are_complete(history: History, verdict: Verdict) -> None:
    """A bookie that the metadata names in the place of another has every entry of the segment that it should store."""
    for named in history.of(CopiesNamed):
        verdict.decided += 1
        if named.missing:
            shown = ", ".join(str(entry_id) for entry_id in named.missing[:SHOWN])
            verdict.violations.append(
                f"{named.bookie_id} was named for entries {named.first_entry_id} to {named.last_entry_id} of ledger {named.ledger_id} at "
                f"{named.time_s:.6f} without {len(named.missing)} of them: {shown}"
            )


def marks_stay_until_repaired(history: History, verdict: Verdict) -> None:
    """A mark is deleted only when every bookie that it names has its copies or is replaced."""
    for done in history.of(MarkDeleted):
        verdict.decided += 1
        if done.lacking:
            lacking = ", ".join(done.lacking)
            verdict.violations.append(
                f"the mark of ledger {done.ledger_id} was deleted at {done.time_s:.6f}, which lacks copies of {lacking}"
            )


def decommissioned_bookies_are_not_needed(history: History, verdict: Verdict) -> None:
    """When a decommission ends, no ledger names the bookie, and it holds no entry alone. In the end no ledger has copies on it."""
    done: dict[str, float] = {}
    for event in history.of(BookieDecommissioned):
        verdict.decided += 1
        done[event.bookie_id] = event.time_s
        if event.named_by:
            named = ", ".join(str(ledger_id) for ledger_id in event.named_by[:SHOWN])
            verdict.violations.append(f"{event.bookie_id} was decommissioned at {event.time_s:.6f}, and is named by ledgers {named}")
        if event.alone:
            alone = ", ".join(entry_name(place) for place in event.alone[:SHOWN])
            verdict.violations.append(f"{event.bookie_id} was decommissioned at {event.time_s:.6f}, and alone held {alone}")
    for copy in history.of(CopyFound):
        if copy.bookie_id in done:
            name = entry_name((copy.ledger_id, copy.entry_id))
            verdict.violations.append(f"{name} is to be on {copy.bookie_id}, which was decommissioned")


def acknowledged_entries_span_racks(history: History, verdict: Verdict) -> None:
    """An entry is acknowledged when bookies in enough racks have it."""
    for stored in history.of(StoredInRacks):
        verdict.decided += 1
        if len(stored.racks) < stored.needed:
            name, racks = entry_name((stored.ledger_id, stored.entry_id)), ", ".join(stored.racks) or "none"
            verdict.violations.append(f"{name} was acknowledged at {stored.time_s:.6f} in {stored.needed} racks, and was in: {racks}")


def living_writers_are_not_fenced(history: History, verdict: Verdict) -> None:
    """A worker that fences an open ledger has seen nothing of its writer for the whole grace period, and there was nothing to be seen.

    There was something if an entry was sent after the grace period began, and acknowledged before the worker looked for the last time.
    """
    sent = {(event.ledger_id, event.entry_id): event.time_s for event in history.of(Sent)}
    acknowledged: dict[int, list[Acknowledged]] = {}
    for event in history.of(Acknowledged):
        acknowledged.setdefault(event.ledger_id, []).append(event)
    for gone in history.of(WriterHeldGone):
        verdict.decided += 1
        began_s = gone.time_s - gone.grace_s * GRACE_SHARE
        for event in acknowledged.get(gone.ledger_id, ()):
            if event.time_s < gone.looked_s and sent.get((event.ledger_id, event.entry_id), 0.0) > began_s:
                verdict.violations.append(
                    f"{gone.worker} held the writer of ledger {gone.ledger_id} to be gone at {gone.time_s:.6f}, which had entry "
                    f"{event.entry_id} acknowledged at {event.time_s:.6f}"
                )
                break


def repairs_undo_nothing(history: History, verdict: Verdict) -> None:
    """Each change of a ledger's metadata does one thing to the version before it.

    A worker replaces one bookie of one segment whose end is fixed, or several as it has planned for the bookies that the segment has now.
    A writer or a recovery changes the last segment, or adds others. A change that does both, or more, was made from an older version and
    undoes what was changed meanwhile.
    """
    latest: dict[int, MetadataWritten] = {}
    planned = {(plan.ledger_id, plan.first_entry_id, plan.before, plan.after) for plan in history.of(Rearranged)}
    for after in history.of(MetadataWritten):
        before = latest.get(after.ledger_id)
        latest[after.ledger_id] = after
        if before is not None:
            verdict.decided += 1
            wrong = _wrong_change(before, after, planned)
            if wrong:
                verdict.violations.append(
                    f"version {after.version} of the metadata of ledger {after.ledger_id} at {after.time_s:.6f} {wrong}"
                )


def _wrong_change(before: MetadataWritten, after: MetadataWritten, planned: Container[Plan]) -> str:
    """Why a version cannot follow the one before; empty if it can."""
    if after.version <= before.version:
        return f"follows version {before.version}"
    if RANKS.get(after.state, -1) < RANKS.get(before.state, -1):
        return f"is {after.state} and was {before.state}"
    if after.sizes != before.sizes:
        return f"has sizes {after.sizes}, not {before.sizes}"
    was_closed = before.state == "closed"
    end = (before.last_entry_id, before.length)
    if was_closed and (after.last_entry_id, after.length) != end:
        return f"ends at {after.last_entry_id} with {after.length} bytes, not at {before.last_entry_id} with {before.length}"
    firsts, firsts_before = [first for first, _ in after.segments], [first for first, _ in before.segments]
    if firsts[: len(firsts_before)] != firsts_before or (was_closed and len(firsts) > len(firsts_before)):
        return f"has segments at {firsts}, and those at {firsts_before} went before"
    fixed = len(before.segments) if was_closed else len(before.segments) - 1
    pairs = list(zip(before.segments[:fixed], after.segments[:fixed], strict=True))
    replaced = _replaced(pairs)
    changed = [(before.ledger_id, first, names, others) for (first, names), (_, others) in pairs if names != others]
    rest = after.segments[fixed:] != before.segments[fixed:] or after.state != before.state
    was_planned = len(changed) == 1 and changed[0] in planned
    if (1 if was_planned else len(replaced)) + rest > 1:
        also = " and changes the last segment or the state" if rest else ""
        return f"replaces {', '.join(replaced)} at once{also}"
    return ""


def _replaced(pairs: Sequence[tuple[Segment, Segment]]) -> list[str]:
    """The places of segments that have another bookie."""
    return [
        f"{bookie} by {other} from entry {first} on"
        for (first, bookies), (_, others) in pairs
        for bookie, other in zip(bookies, others, strict=True)
        if bookie != other
    ]


_OF_LOGS = (
    "one_record_at_one_offset",
    "readers_miss_nothing",
    "acknowledged_records_stay",
    "writers_keep_their_order",
    "epochs_end_what_was_before",
    "wall_times_rise",
    "ends_are_readable",
)
"""Checkers of a log with writers and readers, without publishers."""
_OF_ONE_WRITER = ("metadata_moves_forward", "undeleted_ledgers_are_whole", "hedging_keeps_its_budget")
"""Checkers of ledgers that say nothing here: `repairs_undo_nothing` has the place of the first, and a node has several reading clients."""
REPAIR_CHECKERS: dict[str, Checker] = {
    **{name: check for name, check in LEDGER_CHECKERS.items() if name not in _OF_ONE_WRITER},
    **{
        check.__name__: check
        for check in (
            ledgers_have_full_copies,
            named_copies_are_complete,
            marks_stay_until_repaired,
            decommissioned_bookies_are_not_needed,
            living_writers_are_not_fenced,
            acknowledged_entries_span_racks,
            repairs_undo_nothing,
        )
    },
    **DOMAIN_CHECKERS,
    **{name: LOG_CHECKERS[name] for name in _OF_LOGS},
}
"""The checkers of the repair workload, by name."""
