"""The checkers of databases, judged by written histories: good ones pass, and each bad one is caught by the checker whose matter it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from triplicate_simulator.checkers.history import History, judge
from triplicate_simulator.checkers.linearizability import Invoked, Returned
from triplicate_simulator.checkers.sql_rules import (
    SQL_CHECKERS,
    BalancesRead,
    CommitRequested,
    Committed,
    CopyDiverged,
    FinalCopy,
    MonotonicRead,
    OutcomeReported,
    OwnWriteRead,
    RequestTooOld,
    RolledBack,
    Row,
    RowsRead,
    SavepointUndone,
    TicketIssued,
)


def journal(*tokens: str, registers: Mapping[str, str] | None = None) -> Sequence[Row]:
    return [(number, number, token, (registers or {}).get(token)) for number, token in enumerate(tokens, 1)]


def copies(**tables: Sequence[Row]) -> list[Any]:
    return [FinalCopy(node, 9, tables) for node in ("n1", "n2")]


def asked(*tokens: str) -> list[Any]:
    return [CommitRequested(1.0, "client", token) for token in tokens]


def acked(*tokens: str) -> list[Any]:
    return [*asked(*tokens), *(Committed(2.0, token, 5) for token in tokens)]


def blamed(events: list[Any]) -> list[str]:
    return [verdict.checker for verdict in judge(History(events), SQL_CHECKERS) if verdict.violations]


ACCOUNTS = [("ann", 70, 100), ("bob", 130, 100)]
TRANSFERS = [(1, "transfer:1", "ann", "bob", 30)]
BOOKS: dict[str, Sequence[Row]] = {"accounts": ACCOUNTS, "transfers": TRANSFERS, "journal": journal("transfer:1")}

GOOD: dict[str, list[Any]] = {
    "nothing happened": [],
    "an acknowledged transaction is there once": [*acked("a"), *copies(journal=journal("a"))],
    "an acknowledged row of a crowd is there": [*acked("crowd:1"), *copies(crowd=[(1, 1, "crowd:1")])],
    "a long read has all its rows": [RowsRead(3.0, "r", 256, 256, 256, 1)],
    "an unknown one is there": [*asked("a"), *copies(journal=journal("a"))],
    "an unknown one is not there": [*asked("a"), *copies(journal=[])],
    "a refused one is not there": [*asked("a"), RolledBack(2.0, "a", "40001"), *copies(journal=[])],
    "a request that was refused as one that has run is there": [*asked("a"), RequestTooOld(2.0, "a"), *copies(journal=journal("a"))],
    "a later answer is true": [
        *asked("a", "b"),
        OutcomeReported(5.0, "a", "committed"),
        OutcomeReported(5.0, "b", "aborted"),
        *copies(journal=journal("a")),
    ],
    "what was undone is not there": [SavepointUndone(1.0, "u"), *acked("a"), *copies(journal=journal("a"))],
    "transfers make the balances": [*acked("transfer:1"), *copies(**BOOKS), BalancesRead(3.0, "r", 200, 200)],
    "tickets grow": [
        *acked("t", "u"),
        TicketIssued(0.0, 1.0, "t", 1),
        TicketIssued(2.0, 3.0, "u", 4),
        TicketIssued(5.0, 6.0, "t", 1),
        *copies(tickets=[(1, 1, "t", None), (4, 4, "u", None)], journal=journal("t", "u")),
    ],
    "a repeated request gets the ticket that was never received": [
        CommitRequested(0.0, "client", "t"),
        TicketIssued(1.0, 2.0, "u", 2),
        CommitRequested(3.0, "client", "t"),
        TicketIssued(3.0, 4.0, "t", 1),
    ],
    "tickets asked for at once come in any order": [TicketIssued(0.0, 5.0, "t", 2), TicketIssued(0.5, 4.0, "u", 1)],
    "a table and its token": [*acked("table:1"), *copies(schema=[("table", "made_table:1", "", "")], journal=journal("table:1"))],
    "a counter after two steps": [
        *acked("a", "b"),
        *copies(registers=[(1, "count0", 2, "b")], journal=journal("a", "b", registers={"a": "count0", "b": "count0"})),
    ],
    "a copy that is rebuilt starts from nothing": [MonotonicRead(1.0, "n1", 1, "journal", 9), MonotonicRead(2.0, "n1", 2, "journal", 3)],
    "a write is found by its client": [OwnWriteRead(3.0, "n2", "a", 5, 1)],
}

BAD: dict[str, tuple[str, list[Any]]] = {
    "an acknowledged transaction is lost": ("transactions_happen_once", [*acked("a"), *copies(journal=[])]),
    "an acknowledged transaction is doubled": ("transactions_happen_once", [*acked("a"), *copies(journal=journal("a", "a"))]),
    "an unknown transaction is doubled": ("transactions_happen_once", [*asked("a"), *copies(journal=journal("a", "a"))]),
    "a refused transaction is there": (
        "transactions_happen_once",
        [*asked("a"), RolledBack(2.0, "a", "40001"), *copies(journal=journal("a"))],
    ),
    "a transaction is there that nobody asked to commit": ("transactions_happen_once", copies(journal=journal("a"))),
    "reported committed and it is not there": (
        "transactions_happen_once",
        [*asked("a"), OutcomeReported(5.0, "a", "committed"), *copies(journal=[])],
    ),
    "reported aborted and it is there": (
        "transactions_happen_once",
        [*asked("a"), OutcomeReported(5.0, "a", "aborted"), *copies(journal=journal("a"))],
    ),
    "what was undone is there": ("transactions_happen_once", [SavepointUndone(1.0, "u"), *copies(journal=journal("u"))]),
    "a request that was refused as one that has run is not there": (
        "transactions_happen_once",
        [*asked("a"), RequestTooOld(2.0, "a"), *copies(journal=[])],
    ),
    "a row differs": ("copies_are_equal", [FinalCopy("n1", 9, {"t": [(1, "x")]}), FinalCopy("n2", 9, {"t": [(1, "y")]})]),
    "a rowid differs": ("copies_are_equal", [FinalCopy("n1", 9, {"t": [(1, "x")]}), FinalCopy("n2", 9, {"t": [(2, "x")]})]),
    "a table is missing": ("copies_are_equal", [FinalCopy("n1", 9, {"t": []}), FinalCopy("n2", 9, {})]),
    "a row is there twice": ("copies_are_equal", [FinalCopy("n1", 9, {"t": [(1,)]}), FinalCopy("n2", 9, {"t": [(1,), (1,)]})]),
    "a copy ends elsewhere": ("copies_are_equal", [FinalCopy("n1", 9, {}), FinalCopy("n2", 8, {})]),
    "a copy was found wrong": ("copies_are_equal", [CopyDiverged(4.0, "n1", "delete of 1 rows changed 0")]),
    "a stale read of a register": (
        "registers_are_linearizable",
        [
            Invoked(0.0, 1, "a", "x", "write", (5,)),
            Returned(1.0, 1),
            Invoked(2.0, 2, "b", "x", "read"),
            Returned(3.0, 2, 0),
        ],
    ),
    "a client does not find its write": ("sessions_read_their_writes", [OwnWriteRead(3.0, "n2", "a", 5, 0)]),
    "rows are sent twice": ("reads_are_whole", [RowsRead(3.0, "r", 256, 457, 256, 1)]),
    "a row is sent twice and another is not": ("reads_are_whole", [RowsRead(3.0, "r", 256, 256, 255, 1)]),
    "rows are of two states": ("reads_are_whole", [RowsRead(3.0, "r", 256, 256, 256, 2)]),
    "an acknowledged row of a crowd is lost": ("transactions_happen_once", [*acked("crowd:1"), *copies(crowd=[])]),
    "money is made": ("accounts_keep_their_sum", [BalancesRead(3.0, "r", 230, 200)]),
    "a transfer is forgotten": (
        "accounts_keep_their_sum",
        [*acked("transfer:1"), *copies(**{**BOOKS, "accounts": [("ann", 100, 100), ("bob", 100, 100)]})],
    ),
    "a transfer without its token": ("transactions_are_whole", copies(**{**BOOKS, "journal": []})),
    "a token without its transfer": (
        "transactions_are_whole",
        [*acked("transfer:1"), *copies(accounts=[], transfers=[], journal=journal("transfer:1"))],
    ),
    "a table without its token": ("transactions_are_whole", copies(schema=[("table", "made_table:1", "", "")], journal=[])),
    "a token without its table": ("transactions_are_whole", [*acked("table:1"), *copies(schema=[], journal=journal("table:1"))]),
    "a counter has lost a step": (
        "transactions_are_whole",
        [
            *acked("a", "b"),
            *copies(registers=[(1, "count0", 1, "b")], journal=journal("a", "b", registers={"a": "count0", "b": "count0"})),
        ],
    ),
    "a ticket is given twice": ("tickets_are_numbered_once", [TicketIssued(0.0, 1.0, "t", 1), TicketIssued(2.0, 3.0, "u", 1)]),
    "a ticket's number goes back": ("tickets_are_numbered_once", [TicketIssued(0.0, 1.0, "t", 7), TicketIssued(2.0, 3.0, "u", 3)]),
    "a request is answered in two ways": ("tickets_are_numbered_once", [TicketIssued(0.0, 1.0, "t", 1), TicketIssued(2.0, 3.0, "t", 2)]),
    "a copy has another ticket": (
        "tickets_are_numbered_once",
        [*acked("t"), TicketIssued(0.0, 1.0, "t", 1), *copies(tickets=[(2, 2, "t", None)], journal=journal("t"))],
    ),
    "a copy goes back": ("copies_go_forward", [MonotonicRead(1.0, "n1", 1, "journal", 9), MonotonicRead(2.0, "n1", 1, "journal", 8)]),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_passes(name: str) -> None:
    assert blamed(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_is_caught_by_its_checker(name: str) -> None:
    checker, events = BAD[name]
    assert checker in blamed(events)


def test_every_checker_is_held_to_a_bad_history() -> None:
    assert {checker for checker, _ in BAD.values()} == set(SQL_CHECKERS)


def test_checkers_count_what_they_decide() -> None:
    everything = [event for events in GOOD.values() for event in events if not isinstance(event, FinalCopy)]
    registers = [Invoked(0.0, 1, "a", "x", "read"), Returned(1.0, 1, 0)]
    glances = [MonotonicRead(1.0, "n1", 1, "journal", 9), MonotonicRead(2.0, "n1", 1, "journal", 9)]
    verdicts = judge(History([*everything, *registers, *glances, *copies(**BOOKS)]), SQL_CHECKERS)
    assert all(verdict.decided for verdict in verdicts), [(verdict.checker, verdict.decided) for verdict in verdicts]
