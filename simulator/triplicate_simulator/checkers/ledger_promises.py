"""The promises to users of ledgers, judged by what clients saw.

A history of ledgers holds entries sent, acknowledgements, reads and their results, ends of ledgers, versions of their metadata, and in the
end the copies on each bookie. With deferred sync an acknowledgement is that of the force. The four promises:

1. an acknowledged entry is readable at once;
2. an entry that was read once stays readable;
3. if an entry is acknowledged, every entry before it is too;
4. every reader sees the same order.

The invariants of the published formal work are in `checkers.ledger_invariants`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from triplicate_simulator.checkers.history import History, Verdict

Place = tuple[int, int]
"""Ledger and entry."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A writer numbered an entry and sent it."""

    time_s: float
    writer: str
    ledger_id: int
    entry_id: int
    payload: bytes
    last_of_append: int = -1
    """The last entry of the same append, where several are acknowledged together."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """An entry was acknowledged to its writer."""

    time_s: float
    writer: str
    ledger_id: int
    entry_id: int


@dataclass(frozen=True, slots=True)
class Read:
    """A read ended with a definite answer. `payload` None: there is no such entry."""

    started_s: float
    ended_s: float
    reader: str
    ledger_id: int
    entry_id: int
    payload: bytes | None
    is_confirmed: bool = True
    """Whether the entry was shown as confirmed. Otherwise it may be gone later."""


@dataclass(frozen=True, slots=True)
class Tailed:
    """A tailing reader received the next entry."""

    time_s: float
    reader: str
    ledger_id: int
    entry_id: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """An observer saw the ledger closed, with this last entry (-1: empty) and, where known, this length in bytes of payload."""

    time_s: float
    observer: str
    ledger_id: int
    last_entry_id: int
    length: int | None = None


@dataclass(frozen=True, slots=True)
class LengthSubstituted:
    """A recovery closed the ledger with a substitute length, since every copy of the last entry was out of reach."""

    time_s: float
    ledger_id: int


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A handle of a ledger had this last-add-confirmed (-1: none). `is_open`: it does not come from the end of a closed ledger.

    A handle is one writer, or one opening of a ledger by a reader.
    """

    time_s: float
    handle: str
    ledger_id: int
    last_entry_id: int
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class MetadataWritten:
    """A version of a ledger's metadata took effect."""

    time_s: float
    ledger_id: int
    version: int
    state: str
    """`open`, `in recovery` or `closed`."""
    sizes: tuple[int, int, int]
    """Ensemble, write quorum, ack quorum."""
    segments: tuple[tuple[int, tuple[str, ...]], ...]
    """First entry and bookies of each."""
    last_entry_id: int | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Deleted:
    """A ledger was deleted; its entries need not be readable any more. Its writer still gets no acknowledgement beyond its end."""

    time_s: float
    ledger_id: int


@dataclass(frozen=True, slots=True)
class Undeleted:
    """A deleted ledger was restored.

    `in_time`: while its bookies had to keep its entries, now and at each restoration before. Otherwise its entries need not be readable.
    """

    time_s: float
    ledger_id: int
    in_time: bool


@dataclass(frozen=True, slots=True)
class Wiped:
    """A bookie lost all its disks and came back with empty ones."""

    time_s: float
    bookie_id: str


@dataclass(frozen=True, slots=True)
class Denied:
    """A bookie that was asked at this time answered explicitly that it has no such entry."""

    time_s: float
    bookie_id: str
    ledger_id: int
    entry_id: int


@dataclass(frozen=True, slots=True)
class Copy:
    """The copy of an entry on one bookie of its write set at the end. `payload` None: the bookie delivers no copy."""

    bookie_id: str
    ledger_id: int
    entry_id: int
    payload: bytes | None
    is_listed: bool = False
    """The bookie lists the entry, and was not asked for it."""


Event = (
    Sent
    | Acknowledged
    | Read
    | Tailed
    | Ended
    | LengthSubstituted
    | Confirmed
    | MetadataWritten
    | Deleted
    | Undeleted
    | Wiped
    | Denied
    | Copy
)


def acknowledged(history: History) -> dict[Place, float]:
    """Acknowledged entries, with the time of each acknowledgement."""
    found: dict[Place, float] = {}
    for event in history.of(Acknowledged):
        found.setdefault((event.ledger_id, event.entry_id), event.time_s)
    return found


def seen(history: History) -> dict[Place, tuple[float, str]]:
    """Entries that a reader received, with the time of the first read and its reader."""
    found: dict[Place, tuple[float, str]] = {}
    for event in history.events:
        if isinstance(event, Tailed):
            found.setdefault((event.ledger_id, event.entry_id), (event.time_s, event.reader))
        elif isinstance(event, Read) and event.payload is not None and event.is_confirmed:
            found.setdefault((event.ledger_id, event.entry_id), (event.ended_s, event.reader))
    return found


def deleted(history: History) -> dict[int, float]:
    """Deletion times by ledger, without ledgers that were restored in time."""
    gone: dict[int, float] = {}
    for event in history.events:
        if isinstance(event, Deleted):
            gone.setdefault(event.ledger_id, event.time_s)
        elif isinstance(event, Undeleted) and event.in_time:
            gone.pop(event.ledger_id, None)
    return gone


def denied(history: History) -> Iterator[Read]:
    """Reads that answered "no such entry", of ledgers that existed at the time."""
    gone = deleted(history)
    for event in history.of(Read):
        if event.payload is None and event.ended_s < gone.get(event.ledger_id, inf):
            yield event


def ends(history: History) -> dict[int, list[Ended]]:
    """Observations of closed ledgers, by ledger."""
    found: dict[int, list[Ended]] = {}
    for event in history.of(Ended):
        found.setdefault(event.ledger_id, []).append(event)
    return found


def acknowledged_is_readable(history: History, verdict: Verdict) -> None:
    """Promise 1: after an acknowledgement no read finds no entry, no end lies before it, and the final read has it."""
    confirmed = acknowledged(history)
    closed, gone = ends(history), deleted(history)
    final = {
        (event.ledger_id, event.entry_id)
        for event in history.of(Read)
        if event.reader == history.final_reader and event.payload is not None
    }
    for event in history.of(Read):
        when = confirmed.get((event.ledger_id, event.entry_id))
        verdict.decided += when is not None and when <= event.started_s
    for event in denied(history):
        when = confirmed.get((event.ledger_id, event.entry_id))
        if when is not None and when <= event.started_s:
            verdict.violations.append(
                f"{entry_name(event)} was acknowledged at {when:.6f} and {event.reader} found none at {event.started_s:.6f}"
            )
    for place, when in confirmed.items():
        for end in closed.get(place[0], ()):
            verdict.decided += 1
            if place[1] > end.last_entry_id:
                verdict.violations.append(f"{entry_name(place)} was acknowledged at {when:.6f}, but {describe_end(end)}")
        if history.final_reader is not None and place[0] not in gone:
            verdict.decided += 1
            if place not in final:
                verdict.violations.append(f"{entry_name(place)} was acknowledged at {when:.6f} and is missing from the final read")


def read_stays_readable(history: History, verdict: Verdict) -> None:
    """Promise 2: an entry that was read once is found by every later read and lies within every end."""
    known = seen(history)
    for event in history.of(Read):
        first = known.get((event.ledger_id, event.entry_id))
        verdict.decided += first is not None and first[0] <= event.started_s
    for event in denied(history):
        first = known.get((event.ledger_id, event.entry_id))
        if first is not None and first[0] <= event.started_s:
            verdict.violations.append(f"{entry_name(event)} was read by {first[1]} at {first[0]:.6f} and {event.reader} found none later")
    closed = ends(history)
    for place, (when, reader) in known.items():
        for end in closed.get(place[0], ()):
            verdict.decided += 1
            if place[1] > end.last_entry_id:
                verdict.violations.append(f"{entry_name(place)} was read by {reader} at {when:.6f}, but {describe_end(end)}")


def acknowledged_in_order(history: History, verdict: Verdict) -> None:
    """Promise 3: acknowledgements of a ledger leave no gap before them."""
    confirmed: dict[int, set[int]] = {}
    reach: dict[int, int] = {}
    for event in history.events:
        if not isinstance(event, Acknowledged):
            continue
        mine = confirmed.setdefault(event.ledger_id, set())
        mine.add(event.entry_id)
        front = reach.get(event.ledger_id, -1)
        while front + 1 in mine:
            front += 1
        reach[event.ledger_id] = front
        verdict.decided += 1
        if event.entry_id > front:
            verdict.violations.append(f"{entry_name(event)} was acknowledged at {event.time_s:.6f} before entry {front + 1}")


def same_order_for_all(history: History, verdict: Verdict) -> None:
    """Promise 4: each place has one payload for all readers. A tail has no gaps and no repeats, and ends where its ledger does. Ends agree.
    All bytes were sent by a writer."""
    payloads: dict[Place, tuple[bytes, str]] = {}
    sent: set[tuple[int, bytes]] = set()
    for event in history.events:
        if isinstance(event, Sent):
            sent.add((event.ledger_id, event.payload))
    next_of_tail: dict[tuple[str, int], int] = {}
    tails: dict[str, None] = {}
    for event in history.events:
        if isinstance(event, Read | Tailed | Copy) and event.payload is not None:
            place, who = (event.ledger_id, event.entry_id), _who(event)
            first = payloads.setdefault(place, (event.payload, who))
            verdict.decided += 1
            if first[0] != event.payload:
                verdict.violations.append(
                    f"{entry_name(event)} differs: {first[1]} has {first[0][:40]!r}, {who} has {event.payload[:40]!r}"
                )
            if (event.ledger_id, event.payload) not in sent:
                verdict.violations.append(f"{entry_name(event)}: {who} has bytes that were never sent: {event.payload[:40]!r}")
        if isinstance(event, Tailed):
            tail = (event.reader, event.ledger_id)
            tails[event.reader] = None
            expected = next_of_tail.get(tail, event.entry_id)
            next_of_tail[tail] = event.entry_id + 1
            if event.entry_id != expected:
                verdict.violations.append(f"{event.reader} was given {entry_name(event)} where entry {expected} was next")
        elif isinstance(event, Ended) and event.observer in tails:
            verdict.decided += 1
            reached = next_of_tail.get((event.observer, event.ledger_id), 0) - 1
            if reached != event.last_entry_id:
                verdict.violations.append(f"ledger {event.ledger_id}: {describe_end(event)} and was given entries up to {reached} only")
    for ledger_id, mine in ends(history).items():
        verdict.decided += len(mine) - 1
        for end in mine[1:]:
            if end.last_entry_id != mine[0].last_entry_id:
                verdict.violations.append(f"ledger {ledger_id} has two ends: {describe_end(mine[0])}; {describe_end(end)}")


def entry_name(what: Sent | Acknowledged | Read | Tailed | Copy | Place) -> str:
    """An entry, for messages."""
    ledger_id, entry_id = what if isinstance(what, tuple) else (what.ledger_id, what.entry_id)
    return f"entry {entry_id} of ledger {ledger_id}"


def describe_end(end: Ended) -> str:
    """An end, for messages."""
    return f"{end.observer} saw the ledger end at {end.last_entry_id} at {end.time_s:.6f}"


def _who(event: Read | Tailed | Copy) -> str:
    match event:
        case Copy():
            return f"the bookie {event.bookie_id}"
        case Read() | Tailed():
            return event.reader
