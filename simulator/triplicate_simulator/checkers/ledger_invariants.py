"""The invariants of the published formal work on BookKeeper's protocol, judged by what clients saw and by the metadata's versions.

The five invariants of the TLA+ specification (Vanlightly, bookkeeper-tlaplus): values have their types (`metadata_is_well_formed`); clients
and metadata never disagree about a closed ledger (`clients_and_metadata_agree`, `metadata_moves_forward`); every acknowledged entry is
readable (`ledger_promises.acknowledged_is_readable`); committed entries reach their ack quorum (`closed_entries_have_their_copies`);
entries are read in the order of writing (`read_order_is_write_order`). In addition, the last-add-confirmed that readers get never falls and
never lies beyond what was acknowledged (`confirmed_is_acknowledged`).
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from triplicate_simulator.checkers.history import History, Verdict
from triplicate_simulator.checkers.ledger_promises import (
    Acknowledged,
    Confirmed,
    Copy,
    Ended,
    LengthSubstituted,
    MetadataWritten,
    Place,
    Read,
    Sent,
    Tailed,
    Undeleted,
    acknowledged,
    deleted,
    describe_end,
    ends,
    entry_name,
)

STATES = {"open": 0, "in recovery": 1, "closed": 2}


def metadata_is_well_formed(history: History, verdict: Verdict) -> None:
    """Every version of every ledger's metadata has valid values."""
    for written in history.of(MetadataWritten):
        verdict.decided += 1
        ensemble, write, ack = written.sizes
        wrong = []
        if written.state not in STATES:
            wrong.append(f"state {written.state}")
        if not ensemble >= write >= ack >= 1:
            wrong.append(f"sizes {written.sizes}")
        firsts = [first for first, _ in written.segments]
        if not firsts or firsts[0] != 0 or firsts != sorted(dict.fromkeys(firsts)):
            wrong.append(f"segments that begin at {firsts}")
        for first, bookies in written.segments:
            if len(dict.fromkeys(bookies)) != ensemble or len(bookies) != ensemble or "" in bookies:
                wrong.append(f"a segment at {first} on {', '.join(bookies)}")
        is_closed = written.state == "closed"
        if is_closed != (written.last_entry_id is not None) or (is_closed and (written.last_entry_id or 0) < -1):
            wrong.append(f"last entry {written.last_entry_id}")
        if wrong:
            verdict.violations.append(f"{_version(written)} has {' and '.join(wrong)}")


def metadata_moves_forward(history: History, verdict: Verdict) -> None:
    """A ledger is open, then in recovery, then closed, and closed for ever at one entry.

    While it is open its writer replaces or adds the last segment, beyond all acknowledged entries. While it is in recovery nothing changes
    until it is closed, which may change segments once. Afterwards bookies may be replaced within segments, and nothing else.
    """
    latest: dict[int, MetadataWritten] = {}
    reach: dict[int, int] = {}
    for event in history.events:
        if isinstance(event, Acknowledged):
            reach[event.ledger_id] = max(reach.get(event.ledger_id, -1), event.entry_id)
        elif isinstance(event, Undeleted) and event.ledger_id in latest:
            # The metadata is as before, and its versions start again.
            latest[event.ledger_id] = replace(latest[event.ledger_id], version=-1)
        elif isinstance(event, MetadataWritten):
            before = latest.get(event.ledger_id)
            latest[event.ledger_id] = event
            if before is not None:
                verdict.decided += 1
                verdict.violations += [f"{_version(event)} {what}" for what in _wrong_steps(before, event, reach.get(event.ledger_id, -1))]


def _wrong_steps(before: MetadataWritten, after: MetadataWritten, reach: int) -> list[str]:
    """Faults of one step of a ledger's metadata. `reach`: the last entry acknowledged by then."""
    wrong = []
    # Not necessarily the next version: writing back unchanged metadata also counts.
    if after.version <= before.version:
        wrong.append(f"follows version {before.version}")
    if STATES.get(after.state, -1) < STATES.get(before.state, -1):
        wrong.append(f"is {after.state} and was {before.state}")
    if after.sizes != before.sizes:
        wrong.append(f"has sizes {after.sizes}, not {before.sizes}")
    if before.state == "closed":
        if (after.last_entry_id, after.length) != (before.last_entry_id, before.length):
            wrong.append(f"ends at {after.last_entry_id} with {after.length} bytes, not at {before.last_entry_id} with {before.length}")
        if [first for first, _ in after.segments] != [first for first, _ in before.segments]:
            wrong.append("has other segments than the closed ledger had")
        return wrong
    if after.segments == before.segments:
        return wrong
    if (before.state, after.state) not in (("open", "open"), ("in recovery", "closed")):
        wrong.append(f"has other segments, while the ledger went from {before.state} to {after.state}")
    (first, _), kept = before.segments[-1], before.segments[:-1]
    added = after.segments[len(kept) :]
    if after.segments[: len(kept)] != kept or not added or added[0][0] != first:
        starts = [[first for first, _ in version.segments] for version in (after, before)]
        wrong.append(f"has segments at {starts[0]}, which do not go on from those at {starts[1]}")
        return wrong
    changed = added if added[0] != before.segments[-1] else added[1:]
    # A recovery rewrites the entries it finds, so it may move even acknowledged ones to other bookies.
    if after.state == "open" and changed and changed[0][0] <= reach:
        wrong.append(f"has other bookies from entry {changed[0][0]} on, and entry {reach} was acknowledged already")
    return wrong


def clients_and_metadata_agree(history: History, verdict: Verdict) -> None:
    """Every observed end of a ledger is the one in its metadata, and is observed no earlier than it is written. All observers agree."""
    closed: dict[int, MetadataWritten] = {}
    watched: dict[int, None] = {}
    first_acknowledged: dict[int, Ended] = {}
    # The length is a courtesy: a ledger must be closable without the last entry, which the writer may have counted.
    was_in = {event.ledger_id for event in history.events if isinstance(event, LengthSubstituted)}
    for event in history.events:
        if isinstance(event, MetadataWritten):
            watched[event.ledger_id] = None
            if event.state == "closed":
                closed.setdefault(event.ledger_id, event)
        elif isinstance(event, Ended):
            written, other = closed.get(event.ledger_id), first_acknowledged.setdefault(event.ledger_id, event)
            verdict.decided += 1
            if written is None and event.ledger_id in watched:
                verdict.violations.append(f"ledger {event.ledger_id}: {describe_end(event)}, its metadata do not say that it has ended")
            if written is not None and written.last_entry_id != event.last_entry_id:
                verdict.violations.append(f"ledger {event.ledger_id}: {describe_end(event)}, its metadata say {written.last_entry_id}")
            lengths = [length for length in (written.length if written else None, other.length) if length is not None]
            if event.length is not None and event.ledger_id not in was_in and any(length != event.length for length in lengths):
                verdict.violations.append(f"ledger {event.ledger_id}: {event.observer} has length {event.length}, others {lengths}")


def closed_entries_have_their_copies(history: History, verdict: Verdict) -> None:
    """Each entry of a closed ledger is held by its ack quorum, less those of its bookies whose disks were destroyed.

    Judged where copies were counted, as they are at the end. A copy on a destroyed disk does not replace one that is missing on an intact
    disk. A bookie whose disks were replaced counts as intact for ledgers that were made afterwards.
    """
    copies: dict[Place, int] = {}
    destroyed: dict[Place, int] = {}
    made: dict[int, float] = {}
    for written in history.of(MetadataWritten):
        made.setdefault(written.ledger_id, written.time_s)
    for event in history.of(Copy):
        whole_s = history.destroyed.get(event.bookie_id, -inf)
        place, is_destroyed = (event.ledger_id, event.entry_id), made.get(event.ledger_id, -inf) <= whole_s > -inf
        copies[place] = copies.get(place, 0) + (not is_destroyed and (event.payload is not None or event.is_listed))
        destroyed[place] = destroyed.get(place, 0) + is_destroyed
    for place, count in copies.items():
        needed = history.ack_quorums[place[0]]
        verdict.decided += 1
        if count < needed - destroyed[place]:
            lost = f", and {destroyed[place]} of its bookies lost what they had" if destroyed[place] else ""
            verdict.violations.append(f"{entry_name(place)} of a closed ledger has {count} copies, its ack quorum is {needed}{lost}")


def read_order_is_write_order(history: History, verdict: Verdict) -> None:
    """A reader finds under each number the entry that the writer gave that number, and a ledger has one writer."""
    sent: dict[Place, Sent] = {}
    for event in history.events:
        if isinstance(event, Sent):
            place = (event.ledger_id, event.entry_id)
            first = sent.setdefault(place, event)
            if (first.writer, first.payload) != (event.writer, event.payload):
                verdict.violations.append(f"{entry_name(event)} was written by {first.writer} and, otherwise, by {event.writer}")
        elif isinstance(event, Read | Tailed) and event.payload is not None:
            verdict.decided += 1
            written = sent.get((event.ledger_id, event.entry_id))
            if written is None:
                verdict.violations.append(f"{event.reader} received {entry_name(event)}, which was not written yet")
            elif written.payload != event.payload:
                verdict.violations.append(f"{event.reader} was given {event.payload[:40]!r} for {entry_name(event)}")


def confirmed_is_acknowledged(history: History, verdict: Verdict) -> None:
    """The last-add-confirmed of a handle never falls, was acknowledged by then, and is never lost. A writer's own handle is judged alike.

    There are two exceptions, since an application learns of an append as a whole, and of none in the moment of its death. First, the last
    confirmed entry may belong to an append whose acknowledgement is still to come because more of it is in flight; then every entry sent
    before this append was acknowledged. Second, a writer's node may have died after the last entry that it sent. In both cases a reader's
    value is at most what the writer's own handle knew in the end.

    Not decided here: whether an ack quorum had stored an entry at the very moment at which the writer called it confirmed. Answers of
    bookies are no part of the history, so this is judged by its consequences: no end of the ledger lies before what its writer called
    confirmed, and `closed_entries_have_their_copies` counts the copies.
    """
    known = _WriterKnowledge(history)
    gone, closed = deleted(history), ends(history)
    highest: dict[tuple[str, int], int] = {}
    for event in history.of(Confirmed):
        handle = (event.handle, event.ledger_id)
        verdict.decided += 1
        if event.last_entry_id < highest.get(handle, -1):
            verdict.violations.append(
                f"{event.handle} knew entry {highest[handle]} of ledger {event.ledger_id} to be confirmed, "
                f"and at {event.time_s:.6f} only {event.last_entry_id}"
            )
        highest[handle] = max(highest.get(handle, -1), event.last_entry_id)
        if not event.is_open or event.last_entry_id < 0:
            continue
        wrong = known.impossibility(event)
        if wrong:
            name = entry_name((event.ledger_id, event.last_entry_id))
            verdict.violations.append(f"{event.handle} had {name} as confirmed at {event.time_s:.6f}, {wrong}")
        # A deleted ledger need not exist any more, and its old writer may create it again.
        for end in closed.get(event.ledger_id, ()) if known.is_writer(event) and event.ledger_id not in gone else ():
            verdict.decided += 1
            if end.last_entry_id < event.last_entry_id:
                name = entry_name((event.ledger_id, event.last_entry_id))
                verdict.violations.append(f"{event.handle} called {name} confirmed at {event.time_s:.6f}, but {describe_end(end)}")


class _WriterKnowledge:
    """Entries that writers sent, their acknowledgements, and the last-add-confirmed of their handles in the end."""

    def __init__(self, history: History) -> None:
        self._when = acknowledged(history)
        self._deaths = history.deaths
        self._last_of_append: dict[Place, int] = {}
        self._last_sent: dict[int, tuple[str, float]] = {}
        """The writer of each ledger, and the time at which it sent its last entry."""
        for event in history.of(Sent):
            self._last_of_append[event.ledger_id, event.entry_id] = max(event.last_of_append, event.entry_id)
            self._last_sent[event.ledger_id] = (event.writer, event.time_s)
        self._known: dict[int, int] = {}
        for known in history.of(Confirmed):
            if self.is_writer(known):
                self._known[known.ledger_id] = max(self._known.get(known.ledger_id, -1), known.last_entry_id)

    def is_writer(self, event: Confirmed) -> bool:
        """Whether the handle is that of the ledger's writer."""
        return event.handle == self._last_sent.get(event.ledger_id, ("", 0.0))[0]

    def impossibility(self, event: Confirmed) -> str:
        """Why an open ledger's last-add-confirmed is impossible; empty when it is possible."""
        ledger_id, last = event.ledger_id, event.last_entry_id
        due = last
        # Entries of an append that continues beyond `last` are acknowledged together with its end.
        while due >= 0 and self._last_of_append.get((ledger_id, due), due) > last:
            due -= 1
        acknowledged_s = self._when.get((ledger_id, due))
        is_acknowledged = due < 0 or (acknowledged_s is not None and acknowledged_s <= event.time_s)
        if due == last and is_acknowledged:
            return ""
        if not is_acknowledged and not (acknowledged_s is None and self._died_after_sending(event)):
            what = "which" if due == last else f"and entry {due} before it"
            return f"{what} was {'never acknowledged' if acknowledged_s is None else f'acknowledged at {acknowledged_s:.6f}'}"
        if last > self._known.get(ledger_id, -1):
            return f"and its writer knew only {self._known.get(ledger_id, -1)} in the end"
        return ""

    def _died_after_sending(self, event: Confirmed) -> bool:
        writer, sent_s = self._last_sent.get(event.ledger_id, ("", 0.0))
        return any(sent_s <= died_s <= event.time_s for died_s in self._deaths.get(writer, ()))


def _version(written: MetadataWritten) -> str:
    return f"version {written.version} of the metadata of ledger {written.ledger_id} at {written.time_s:.6f}"
