"""The rules for reads at the levels of a replicated database, judged by what they saw.

A read sees which transactions are part of the state that it was given, by their tokens, and the position of that state in the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from triplicate_simulator.checkers.history import Checker, History, Verdict
from triplicate_simulator.checkers.sql_rules import CommitRequested, Committed

CLOCK_ERROR = 0.02
"""A bound is measured by the clock of a node, whose rate is wrong by less than this share."""
SHOWN = 3
"""Transactions named in one violation."""


@dataclass(frozen=True, slots=True)
class StateRead:
    """A client read a whole state in one statement or transaction."""

    started_s: float
    time_s: float
    reader: str
    node: str
    level: str
    max_staleness_s: float
    """At level ``bounded``."""
    wanted_position: int
    """At level ``session``: the position that the session was given."""
    position: int
    """Of the state."""
    tokens: frozenset[str] = field(repr=False)
    """The transactions that are part of it."""


def _named(tokens: frozenset[str] | set[str]) -> str:
    names = sorted(tokens)
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _reads(history: History) -> list[StateRead]:
    return list(history.of(StateRead))


def sessions_read_forward(history: History, verdict: Verdict) -> None:
    """A read at level session has the position that it was given, and all that its reader has seen before, on any node."""
    before: dict[str, StateRead] = {}
    for event in _reads(history):
        last = before.get(event.reader)
        if event.level == "session":
            verdict.decided += 1
            if event.position < event.wanted_position:
                verdict.violations.append(
                    f"{event.reader} wanted position {event.wanted_position} and read {event.position} on {event.node}"
                    f" at {event.time_s:.6f}"
                )
            missing = last.tokens - event.tokens if last is not None else frozenset()
            if last is not None and missing:
                verdict.violations.append(
                    f"{event.reader} saw {_named(missing)} on {last.node} at {last.time_s:.6f},"
                    f" and not on {event.node} at {event.time_s:.6f}"
                )
        before[event.reader] = event


def bounded_reads_are_recent(history: History, verdict: Verdict) -> None:
    """A read at level bounded has everything that was acknowledged before its bound."""
    committed = sorted(history.of(Committed), key=lambda event: event.time_s)
    for event in _reads(history):
        if event.level != "bounded":
            continue
        verdict.decided += 1
        oldest_s = event.started_s - event.max_staleness_s * (1 + CLOCK_ERROR)
        missing = {write.token for write in committed if write.time_s < oldest_s} - event.tokens
        if missing:
            verdict.violations.append(
                f"{event.reader} read on {event.node} at {event.started_s:.6f} at most {event.max_staleness_s:g} s behind,"
                f" without {_named(missing)}, which were acknowledged before"
            )


def states_are_prefixes(history: History, verdict: Verdict) -> None:
    """Every state that was read is a prefix of one order of the transactions, and its position says which.

    The order is that of the positions, and it agrees with time: a state with a transaction has every other one that was acknowledged
    before that one was requested.
    """
    ordered = sorted(_reads(history), key=lambda event: event.position)
    for first, second in pairwise(ordered):
        verdict.decided += 1
        lost = first.tokens - second.tokens
        if lost or (first.position == second.position and first.tokens != second.tokens):
            verdict.violations.append(
                f"{first.node} at position {first.position} shows {_named(lost or second.tokens - first.tokens)},"
                f" {second.node} at position {second.position} does not agree"
            )
    asked: dict[str, float] = {}
    for request in history.of(CommitRequested):
        asked.setdefault(request.token, request.time_s)
    committed = list(history.of(Committed))
    for event in ordered:
        verdict.decided += 1
        latest_s = max((asked[token] for token in event.tokens if token in asked), default=float("-inf"))
        missing = {write.token for write in committed if write.time_s < latest_s} - event.tokens
        if missing:
            verdict.violations.append(
                f"{event.reader} read a state on {event.node} at {event.time_s:.6f} with a transaction that was requested at"
                f" {latest_s:.6f}, and without {_named(missing)}, acknowledged before"
            )


LEVEL_CHECKERS: dict[str, Checker] = {
    check.__name__: check for check in (sessions_read_forward, bounded_reads_are_recent, states_are_prefixes)
}
