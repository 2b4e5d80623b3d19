"""A run in sentences: facts of the nodes and events of clients, in one order, each with its time and node.

Repeated events share a line: the acknowledgements of entries 12 to 40 of a ledger are one line if no fault strikes in between.
"""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triplicate.sim.recorder import Fact
from triplicate_simulator.checkers.ledger_promises import MetadataWritten

WORLD = "world"
TEXT_SHOWN = 48
RUN_GAP_S = 5.0
"""A sequence of entries that pauses for longer is split into two lines."""


@dataclass(frozen=True)
class Line:
    """One line of the timeline."""

    time_s: float
    node: str
    text: str

    def __str__(self) -> str:
        return f"{self.time_s:10.4f}  {self.node:<13} {self.text}"


FACTS: dict[str, str] = {
    "host.start": "starts (life {life})",
    "host.crash": "crashes{silent?, and peers get no reset}; {keep_unsynced?written data stays:unsynced data is lost or torn}",
    "host.pause": "is paused",
    "host.resume": "resumes; {held} callbacks were waiting",
    "host.clock_jump": "has its wall clock set by {seconds} s",
    "point.held": "is held at {point}",
    "point.released": "{point}: the nodes held there continue",
    "point.struck": "reaches {point}",
    "bookie.registered": "registers{read_only? as read-only:}",
    "bookie.replayed": "has replayed {groups} groups of its journal",
    "bookie.torn_tail": "finds its journal torn at byte {offset} of {path}, and drops the unacknowledged rest",
    "bookie.failed": "fails: {error}",
    "bookie.start_failed": "does not start: {error}",
    "bookie.lost": "stays down: {reason}",
    "bookie.fenced": "fences ledger {ledger_id}: it refuses its writer from now on",
    "bookie.disks_full": "has no space left, and refuses entries of writers",
    "bookie.disks_have_room": "has space again",
    "bookie.flush_without_space": "cannot flush: {error}",
    "bookie.ledgers_deleted": "drops {count} deleted ledgers",
    "bookie.digest_mismatch": "refuses entry {entry_id} of ledger {ledger_id}: its digest is wrong",
    "bookie.damaged_read": "finds damage in ledger {ledger_id}: {error}",
    "bookie.index_rebuild": "rebuilds its index: {reason}",
    "bookie.index_rebuilt": "has rebuilt its index, {ledgers} ledgers",
    "bookie.index_made": "has its index rebuilt by the tool: {logs} entry logs, {ledgers} ledgers",
    "bookie.replaced": "gets empty disks, as incarnation {incarnation}",
    "bookie.entries_may_be_missing": "may have held entries that it lacks (incarnation {incarnation})",
    "bookie.start_refused": "refuses to start on empty disks: {error}",
    "bookie.log_compacted": "has compacted entry log {log}, {living_bytes} of {size_bytes} bytes were live",
    "bookie.entry_logs_deleted": "deletes entry logs without live entries, {freed_bytes} bytes",
    "bookie.reserve_released": "releases its reserve",
    "bookie.directory_passed_over": "uses another directory: {error}",
    "metadata.session_renewed": "has lost its metadata session and opens another",
    "client.ledger_created": "creates ledger {ledger} on {ensemble}",
    "client.ensemble_changed": "continues ledger {ledger} from entry {first} on {ensemble}",
    "client.bookie_failed": "drops {bookie} for ledger {ledger}: {why}",
    "client.bookies_missing": "writes ledger {ledger} with {missing} missing",
    "client.connection_lost": "has lost its connection to {bookie}: {why}",
    "client.connect_failed": "cannot connect to {bookie}: {why}",
    "client.digest_mismatch": "gets a damaged entry {entry} of ledger {ledger} from {bookie}",
    "client.writer_failed": "can no longer write ledger {ledger}: {why}; the outcome of {pending} entries is unknown",
    "client.ledger_closed": "closes ledger {ledger} at entry {last}",
    "client.ledger_recovered": "has recovered ledger {ledger} and closed it at entry {last}",
    "log.taken_over": "takes over log {log} with epoch {epoch}, from offset {first}",
    "log.take_over_lost": "loses the race for log {log}",
    "log.writer_failed": "can no longer write log {log} (epoch {epoch}): {error}",
    "log.segment_broken": "abandons the broken ledger {ledger} of log {log}: {error}",
    "replica.role": "is {role} of {log} at position {position}",
    "replica.fenced": "is no longer leader of {log}: {error}",
    "replica.diverged": "finds its copy of {log} wrong: {reason}",
}
"""Templates by kind of fact. ``{name?yes:no}`` is one of two texts, by whether the fact holds."""

EVENTS: dict[str, str] = {
    "Acknowledged": "gets {entries} of ledger {ledger_id} acknowledged",
    "Sent": "sends {entries} of ledger {ledger_id}",
    "Tailed": "follows ledger {ledger_id}: sees {entries}",
    "Read": "reads {entries} of ledger {ledger_id}",
    "ReadNothing": "finds no {entries} in ledger {ledger_id}",
    "Ended": "sees ledger {ledger_id} closed, its last entry is {last_entry_id}",
    "Copy": "holds {entries} of ledger {ledger_id}",
    "CopyMissing": "holds no {entries} of ledger {ledger_id}",
    "Confirmed": "has entry {last_entry_id} of ledger {ledger_id} as last confirmed",
    "Undeleted": "ledger {ledger_id} is restored{in_time?:, too late for its entries}",
    "Wiped": "has lost its disks",
    "Denied": "denies {entries} of ledger {ledger_id}",
    "MetadataWritten": "ledger {ledger_id} is {state} now (version {version}): {segments}",
    "LogAcquired": "acquires log {log} with epoch {epoch} from offset {start_offset}",
    "LogSubmitted": "submits records for log {log} (epoch {epoch})",
    "LogAcknowledged": "gets {entries} of log {log} acknowledged (epoch {epoch})",
    "LogRead": "reads {entries} of log {log} (ledger {ledger_id}, epoch {epoch})",
    "LogReadable": "learns that log {log} is readable up to offset {offset}",
    "BatchStaged": "stages batch {batch} of {application} for log {log}",
    "BatchPublished": "publishes batch {batch} of {application} in log {log} at offsets {first_offset} to {end_offset}",
    "CommitRequested": "requests the commit of {token}",
    "Committed": "{token} is committed at position {position}",
    "RolledBack": "{token} is rolled back ({sqlstate})",
    "OutcomeReported": "{token} is {status}, as reported later",
    "StateRead": "{reader} reads the state at position {position}, at level {level}",
}
"""Templates by class of event. Other events are shown by class and fields."""

OFTEN = ("Confirmed", "LogSubmitted", "LogReadable", "MonotonicRead", "EndRead", "OwnWriteRead")
"""Events that only repeat others: of each actor's sequence only the last is shown."""
ACTORS = ("writer", "reader", "observer", "bookie_id", "client", "node", "publisher", "handle", "application")
"""Fields that name the actor of an event; the first that is set."""


def timeline(facts: Sequence[Fact], events: Sequence[Any], node: str | None = None) -> list[Line]:
    """Describe a run in sentences.

    Args:
        node: only the facts and events of this node, and those of the world.
    """
    strikes = [fact.time_s for fact in facts if fact.kind.startswith("fault.")]
    lines = [*_lines_of_facts(facts), *_lines_of_events(events, strikes)]
    lines.sort(key=lambda line: line.time_s)
    return [line for line in lines if node is None or line.node in (node, WORLD)]


# Facts.


def _lines_of_facts(facts: Iterable[Fact]) -> Iterator[Line]:
    for fact in facts:
        known: Mapping[str, object] = dict(fact.facts)
        if fact.kind.startswith(("fault.", "fault_over.")):
            yield Line(fact.time_s, WORLD, _fault(fact.kind, known))
        elif fact.kind in FACTS:
            yield Line(fact.time_s, fact.node, _filled(FACTS[fact.kind], known))
        else:
            yield Line(fact.time_s, fact.node, f"{fact.kind}: {_plain(known)}")


def _fault(kind: str, facts: Mapping[str, object]) -> str:
    over, name = kind.startswith("fault_over."), kind.partition(".")[2]
    return f"{'--- over' if over else '*** fault'}: {name.replace('_', ' ')}  {_plain(facts)}".rstrip()


def _filled(template: str, facts: Mapping[str, object]) -> str:
    def value(found: re.Match[str]) -> str:
        name, asks, rest = found[1].partition("?")
        if asks:
            yes, _, no = rest.partition(":")
            return yes if facts.get(name) else no
        return _shown(facts.get(name, "?"))

    return re.sub(r"\{([^{}]+)\}", value, template)


def _plain(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in facts.items() if value not in ("", None))


def _shown(value: object) -> str:
    """A value for reading: short, without quotes."""
    if isinstance(value, bytes):
        value = value[:TEXT_SHOWN].decode(errors="replace").rstrip(".\0") + ("…" if len(value) > TEXT_SHOWN else "")
    if isinstance(value, tuple | list):
        value = ", ".join(_shown(item) for item in value)
    if isinstance(value, float):
        return f"{value:.3f}"
    text = " ".join(str(value).split())
    return text if len(text) <= 4 * TEXT_SHOWN else text[: 4 * TEXT_SHOWN] + "…"


# Events.


@dataclass
class _Run:
    """Consecutive events of one kind, actor and place, shown in one line."""

    kind: str
    node: str
    fields: dict[str, object]
    began_s: float
    ended_s: float
    entries: list[int]

    def line(self) -> Line:
        what = "record" if self.kind.startswith("Log") else "entry"
        facts = {**self.fields, "entries": numbers(self.entries, what)}
        text = _filled(EVENTS[self.kind], facts) if self.kind in EVENTS else f"{_words(self.kind)}: {_plain(self.fields)}"
        lasted = f" (until {self.ended_s:.4f})" if self.ended_s - self.began_s >= 0.001 else ""
        return Line(self.began_s, self.node, text + lasted)


def _lines_of_events(events: Iterable[Any], strikes: Sequence[float]) -> Iterator[Line]:
    """A sequence of events does not extend over a fault."""
    runs: dict[tuple[object, ...], _Run] = {}
    for event in events:
        kind, time_s = _kind(event), _time(event)
        if time_s is None:
            # Copies have no time: they were counted at the end.
            time_s = float("inf")
        fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event) if not field.name.endswith("_s")}
        if isinstance(event, MetadataWritten):
            fields["segments"] = "; ".join(f"from entry {first} on {_shown(bookies)}" for first, bookies in event.segments)
        # A handle is its owner's name and a number.
        node = next((str(fields[name]).partition("#")[0] for name in ACTORS if fields.get(name)), WORLD)
        entries = _entries(fields)
        key = (kind, node, fields.get("ledger_id"), fields.get("log"), fields.get("epoch"))
        run = runs.get(key)
        goes_on = run is not None and bisect_left(strikes, run.ended_s) == bisect_left(strikes, time_s)
        if run is not None and goes_on and _continues(run, kind, entries, time_s):
            run.ended_s = time_s
            run.entries += entries
            run.fields = fields
            continue
        if run is not None:
            yield run.line()
        runs[key] = _Run(kind, node, fields, time_s, time_s, entries)
    for run in runs.values():
        yield run.line()


def _entries(fields: Mapping[str, object]) -> list[int]:
    """The entries or records of an event."""
    entry_id, first, records = fields.get("entry_id"), fields.get("first_offset"), fields.get("records")
    if isinstance(first, int) and isinstance(records, tuple):
        return list(range(first, first + len(records)))
    return [entry_id] if isinstance(entry_id, int) else []


def _continues(run: _Run, kind: str, entries: Sequence[int], time_s: float) -> bool:
    """Whether an event belongs to the line before it."""
    if kind in OFTEN:
        return time_s - run.ended_s < RUN_GAP_S
    if not entries or not run.entries or (time_s != run.ended_s and time_s - run.ended_s > RUN_GAP_S):
        return False
    # Reads are in random order; sent, acknowledged and tailed entries are consecutive.
    return kind in ("Read", "Copy", "CopyMissing") or entries[0] == run.entries[-1] + 1


def _kind(event: object) -> str:
    name = type(event).__name__
    if name in ("Read", "Copy") and getattr(event, "payload", b"") is None and not getattr(event, "is_listed", False):
        return "ReadNothing" if name == "Read" else "CopyMissing"
    return name


def _time(event: object) -> float | None:
    found: Callable[[str], Any] = lambda name: getattr(event, name, None)  # noqa: E731
    time_s = found("time_s") if found("time_s") is not None else found("ended_s")
    return None if time_s is None else float(time_s)


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def numbers(entries: Sequence[int], what: str = "entry") -> str:
    """Numbers as text, with their ranges: ``entries 1–5, 7, 9–12``."""
    many = f"{what.removesuffix('y')}ies" if what.endswith("y") else f"{what}s"
    ordered = sorted(set(entries))
    if not ordered:
        return many
    parts: list[str] = []
    first = last = ordered[0]
    for entry_id in [*ordered[1:], None]:
        if entry_id == last + 1:
            last = entry_id
            continue
        parts.append(str(first) if first == last else f"{first}–{last}")
        if entry_id is not None:
            first = last = entry_id
    shown = parts if len(parts) <= 12 else [*parts[:11], f"… {parts[-1]}"]
    return f"{what if len(ordered) == 1 else many} {', '.join(shown)}"
