"""The rules for a replicated database: judged by the answers its clients got, and by the contents of its copies at the end.

Every transaction of a client has a token of its own, which it writes into the table `journal`. The journal of a copy therefore shows which
transactions are part of it, and how often. An unknown outcome is no event. Registers are judged in `linearizability`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triplicate_simulator.checkers.history import Checker, History, Verdict
from triplicate_simulator.checkers.linearizability import registers_are_linearizable

Row = tuple[Any, ...]

SHOWN = 3
"""Differences named in one violation."""


@dataclass(frozen=True, slots=True)
class CommitRequested:
    """The transaction with this token may take effect from now on: its client requested that, perhaps not for the first time."""

    time_s: float
    client: str
    token: str


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit was acknowledged to the client."""

    time_s: float
    token: str
    position: int
    """The node's position at that time."""


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The client got an error other than "unknown": the transaction has no effect. This is final."""

    time_s: float
    token: str
    sqlstate: str


@dataclass(frozen=True, slots=True)
class RequestTooOld:
    """A request whose id has no time was refused as one that has run before, so long ago that its answer is forgotten."""

    time_s: float
    token: str


@dataclass(frozen=True, slots=True)
class OutcomeReported:
    """A later report of the database about a transaction whose outcome was unknown."""

    time_s: float
    token: str
    status: str
    """``committed`` or ``aborted``."""


@dataclass(frozen=True, slots=True)
class SavepointUndone:
    """This token was written and undone by a rollback to a savepoint: it belongs to no outcome."""

    time_s: float
    token: str


@dataclass(frozen=True, slots=True)
class TicketIssued:
    """A statement that inserted a ticket for this token returned the ticket's number, at once or when it was repeated."""

    started_s: float
    ended_s: float
    token: str
    number: int


@dataclass(frozen=True, slots=True)
class BalancesRead:
    """A client read all accounts in one statement or one snapshot."""

    time_s: float
    reader: str
    total: int
    expected: int


@dataclass(frozen=True, slots=True)
class RowsRead:
    """A client read many rows in one statement, each with the same value of one state."""

    time_s: float
    reader: str
    expected: int
    """Rows that the statement has."""
    rows: int
    distinct: int
    states: int
    """Different values among the rows."""


@dataclass(frozen=True, slots=True)
class OwnWriteRead:
    """A copy that had reached the position of a client's own write was asked for that write's token."""

    time_s: float
    node: str
    token: str
    position: int
    """Position of the write."""
    count: int
    """Occurrences of the token."""


@dataclass(frozen=True, slots=True)
class MonotonicRead:
    """A value that only ever grows, as seen in one life of one node."""

    time_s: float
    node: str
    life: int
    name: str
    value: int


@dataclass(frozen=True, slots=True)
class CopyDiverged:
    """A node found its copy to be wrong."""

    time_s: float
    node: str
    reason: str


@dataclass(frozen=True)
class FinalCopy:
    """The contents of one node's copy at the end, when every node has reached the end of the log."""

    node: str
    position: int
    tables: Mapping[str, Sequence[Row]]
    """Rows of each table with their rowids, in order; also the schema, the counters and the engine's own tables."""


@dataclass
class _Tokens:
    """Events by token."""

    asked: dict[str, CommitRequested] = field(default_factory=dict)
    committed: dict[str, Committed] = field(default_factory=dict)
    refused: dict[str, RolledBack] = field(default_factory=dict)
    reported: dict[str, list[OutcomeReported]] = field(default_factory=dict)
    undone: dict[str, SavepointUndone] = field(default_factory=dict)
    too_old: dict[str, RequestTooOld] = field(default_factory=dict)

    @classmethod
    def of(cls, history: History) -> _Tokens:
        found = cls()
        for event in history.of(CommitRequested, Committed, RolledBack, OutcomeReported, SavepointUndone, RequestTooOld):
            match event:
                case CommitRequested():
                    found.asked.setdefault(event.token, event)
                case Committed():
                    found.committed.setdefault(event.token, event)
                case RolledBack():
                    found.refused[event.token] = event
                case OutcomeReported():
                    found.reported.setdefault(event.token, []).append(event)
                case SavepointUndone():
                    found.undone[event.token] = event
                case RequestTooOld():
                    found.too_old.setdefault(event.token, event)
        return found


def journal_of(copy: FinalCopy) -> dict[str, int]:
    """Occurrences of each token in a copy's journal, and in its table of crowds."""
    counts: dict[str, int] = {}
    for row in (*copy.tables.get("journal", ()), *copy.tables.get("crowd", ())):
        token = str(row[TOKEN])
        counts[token] = counts.get(token, 0) + 1
    return counts


def crowd_of(copy: FinalCopy) -> dict[str, int]:
    """Number of each token in a copy's table of crowds."""
    return {str(row[TOKEN]): int(row[TOKEN - 1]) for row in copy.tables.get("crowd", ())}


TOKEN = 2
"""Column of the token in a row of `journal`, `crowd` or `tickets`: after the rowid and the number."""


def transactions_happen_once(history: History, verdict: Verdict) -> None:
    """A committed transaction is in every copy once; a refused, undone or uncommitted one in none. One of unknown outcome is there at most
    once, and as the database reported later. A request refused as one that has run is there once."""
    tokens = _Tokens.of(history)
    for copy in history.of(FinalCopy):
        counts = journal_of(copy)
        for token, acknowledged in tokens.committed.items():
            verdict.decided += 1
            if counts.get(token, 0) != 1:
                verdict.violations.append(f"{token}, acknowledged at {acknowledged.time_s:.6f}, is {_times(counts, token)} in {copy.node}")
        for token, refusal in tokens.refused.items():
            verdict.decided += 1
            if token in counts:
                verdict.violations.append(
                    f"{token}, refused with {refusal.sqlstate} at {refusal.time_s:.6f}, is {_times(counts, token)} in {copy.node}"
                )
        for token, refused in tokens.too_old.items():
            verdict.decided += 1
            if counts.get(token, 0) != 1:
                verdict.violations.append(
                    f"{token}, refused at {refused.time_s:.6f} as one that has run before, is {_times(counts, token)} in {copy.node}"
                )
        for token, said in tokens.reported.items():
            for answer in said:
                verdict.decided += 1
                if counts.get(token, 0) != (answer.status == "committed"):
                    verdict.violations.append(
                        f"{token} was said to be {answer.status} at {answer.time_s:.6f} and is {_times(counts, token)} in {copy.node}"
                    )
        for token, count in counts.items():
            verdict.decided += 1
            if token in tokens.undone:
                verdict.violations.append(f"{token} was undone by its savepoint and is {_times(counts, token)} in {copy.node}")
            elif token not in tokens.asked:
                verdict.violations.append(f"{token}, whose commit was never requested, is in {copy.node}")
            elif count > 1 and token not in tokens.committed:
                verdict.violations.append(f"{token}, of unknown outcome, is {_times(counts, token)} in {copy.node}")


def _times(counts: Mapping[str, int], token: str) -> str:
    count = counts.get(token, 0)
    return "not" if not count else f"{count} time{'s' if count > 1 else ''}"


def copies_are_equal(history: History, verdict: Verdict) -> None:
    """At the end all copies hold the same rows under the same rowids, counters, schema, and kept results. None was ever found wrong."""
    for event in history.of(CopyDiverged):
        verdict.violations.append(f"the copy of {event.node} was found wrong at {event.time_s:.6f}: {event.reason}")
    copies = list(history.of(FinalCopy))
    for copy in copies[1:]:
        first = copies[0]
        verdict.decided += 1
        if copy.position != first.position:
            verdict.violations.append(f"{first.node} ends at position {first.position}, {copy.node} at {copy.position}")
        for table in sorted({*first.tables, *copy.tables}):
            verdict.decided += 1
            one, other = first.tables.get(table), copy.tables.get(table)
            if one != other:
                verdict.violations.append(f"{table} differs: {_difference(first.node, one, copy.node, other)}")


def _difference(name: str, one: Sequence[Row] | None, other_name: str, other: Sequence[Row] | None) -> str:
    if one is None or other is None:
        return f"{name if one is None else other_name} does not have it"
    only_one = [row for row in one if row not in other]
    only_other = [row for row in other if row not in one]
    if not only_one and not only_other:
        return f"{name} and {other_name} have its rows in another order or number"
    return f"only {name} has {only_one[:SHOWN]}, only {other_name} has {only_other[:SHOWN]}"


def sessions_read_their_writes(history: History, verdict: Verdict) -> None:
    """A copy that has reached the position of an acknowledged write shows it."""
    for event in history.of(OwnWriteRead):
        verdict.decided += 1
        if event.count != 1:
            verdict.violations.append(
                f"{event.node} has reached position {event.position} and has {event.token}, acknowledged there, {event.count} times"
                f" at {event.time_s:.6f}"
            )


def accounts_keep_their_sum(history: History, verdict: Verdict) -> None:
    """Transfers neither make nor lose money: every read of all accounts shows their sum, and each balance follows from its transfers."""
    for event in history.of(BalancesRead):
        verdict.decided += 1
        if event.total != event.expected:
            verdict.violations.append(f"{event.reader} saw accounts of {event.total} for {event.expected} at {event.time_s:.6f}")
    for copy in history.of(FinalCopy):
        balances = {row[0]: row[1] for row in copy.tables.get("accounts", ())}
        opened = {row[0]: row[2] for row in copy.tables.get("accounts", ())}
        for _, _, source, target, amount in copy.tables.get("transfers", ()):
            opened[source] -= amount
            opened[target] += amount
        for name, balance in balances.items():
            verdict.decided += 1
            if balance != opened[name]:
                verdict.violations.append(f"{copy.node}: account {name} holds {balance}, its transfers make it {opened[name]}")


def transactions_are_whole(history: History, verdict: Verdict) -> None:
    """A copy has all parts of a transaction or none: its token, and its transfer, ticket, table or counted register."""
    for copy in history.of(FinalCopy):
        journal = journal_of(copy)
        made = {str(row[1]).removeprefix("made_") for row in copy.tables.get("schema", ()) if str(row[1]).startswith("made_")}
        parts: dict[str, set[str]] = {
            "a transfer": {str(row[1]) for row in copy.tables.get("transfers", ())},
            "a table": made,
            "a ticket": {str(row[TOKEN]) for row in copy.tables.get("tickets", ())},
        }
        for part, found in parts.items():
            verdict.decided += len(found)
            verdict.violations += [f"{copy.node} has {part} of {token}, but not its token" for token in sorted(found - journal.keys())]
        wanted = {"transfer": "a transfer", "table": "a table"}
        for token in journal:
            kind = token.partition(":")[0]
            if kind in wanted:
                verdict.decided += 1
                if token not in parts[wanted[kind]]:
                    verdict.violations.append(f"{copy.node} has the token {token}, but not {wanted[kind]} of it")
        counted = {str(row[1]): int(row[2]) for row in copy.tables.get("registers", ()) if str(row[1]).startswith("count")}
        steps = dict.fromkeys(counted, 0)
        for row in copy.tables.get("journal", ()):
            if row[TOKEN + 1] in steps:
                steps[row[TOKEN + 1]] += 1
        for name, value in counted.items():
            verdict.decided += 1
            if value != steps[name]:
                verdict.violations.append(f"{copy.node}: {name} stands at {value} after {steps[name]} steps of one")


def tickets_are_numbered_once(history: History, verdict: Verdict) -> None:
    """A ticket's number is never reused, is greater than all numbers returned before the ticket was requested, and is the one in the
    copies."""
    owners: dict[int, str] = {}
    answers = sorted(history.of(TicketIssued), key=lambda event: event.ended_s)
    for answer in answers:
        verdict.decided += 1
        owner = owners.setdefault(answer.number, answer.token)
        if owner != answer.token:
            verdict.violations.append(f"ticket {answer.number} was given to {owner} and, at {answer.ended_s:.6f}, to {answer.token}")
    first: dict[str, TicketIssued] = {}
    for answer in answers:
        before = first.setdefault(answer.token, answer)
        if before.number != answer.number:
            verdict.violations.append(f"{answer.token} was given ticket {before.number}, and {answer.number} when it asked again")
    # The number may have been assigned when the ticket was first requested, in a request whose answer was lost.
    asked = {answer.token: answer.started_s for answer in first.values()}
    for event in history.of(CommitRequested):
        if event.token in asked:
            asked[event.token] = min(asked[event.token], event.time_s)
    highest, index = (-1, ""), 0
    for answer in sorted(first.values(), key=lambda event: asked[event.token]):
        asked_s = asked[answer.token]
        while index < len(answers) and answers[index].ended_s < asked_s:
            highest = max(highest, (answers[index].number, answers[index].token))
            index += 1
        if answer.token != highest[1] and answer.number <= highest[0]:
            verdict.violations.append(f"{answer.token} asked at {asked_s:.6f}, when ticket {highest[0]} was given, and got {answer.number}")
    for copy in history.of(FinalCopy):
        for row in copy.tables.get("tickets", ()):
            given = first.get(str(row[TOKEN]))
            if given is not None:
                verdict.decided += 1
                if given.number != row[1]:
                    verdict.violations.append(f"{copy.node} has ticket {row[1]} for {given.token}, which was answered {given.number}")


def reads_are_whole(history: History, verdict: Verdict) -> None:
    """A read of many rows returns each of them once, and all of one state."""
    for event in history.of(RowsRead):
        verdict.decided += 1
        if event.rows != event.expected or event.distinct != event.expected:
            verdict.violations.append(
                f"{event.reader} read {event.rows} rows at {event.time_s:.6f}, {event.distinct} of them different, for {event.expected}"
            )
        if event.states != 1:
            verdict.violations.append(f"{event.reader} read rows of {event.states} states in one statement at {event.time_s:.6f}")


def copies_go_forward(history: History, verdict: Verdict) -> None:
    """A value that only grows never shrinks within one life of one node."""
    seen: dict[tuple[str, int, str], MonotonicRead] = {}
    for event in history.of(MonotonicRead):
        before = seen.get((event.node, event.life, event.name))
        if before is not None:
            verdict.decided += 1
            if event.value < before.value:
                verdict.violations.append(
                    f"{event.node} showed {event.name} at {before.value} at {before.time_s:.6f}, and at {event.value} at {event.time_s:.6f}"
                )
        seen[event.node, event.life, event.name] = event


SQL_CHECKERS: dict[str, Checker] = {
    check.__name__: check
    for check in (
        transactions_happen_once,
        copies_are_equal,
        registers_are_linearizable,
        sessions_read_their_writes,
        accounts_keep_their_sum,
        transactions_are_whole,
        tickets_are_numbered_once,
        reads_are_whole,
        copies_go_forward,
    )
}
