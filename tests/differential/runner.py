"""Runs scenarios on both servers and judges each statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from psycopg import pq
from psycopg.pq.abc import PGconn

from tests.differential.comparison import REFUSALS, Answer, differences, extended, is_refusal, simple
from tests.differential.corpus import Scenario, Statement
from tests.differential.servers import Database

WAYS = ("text", "binary")
"""Values as text: by simple queries, and by prepared statements where there are parameters. In binary: by prepared statements."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Both answers to one statement, sent in one way."""

    way: str
    postgresql: Answer
    here: Answer


@dataclass(frozen=True, slots=True)
class Verdict:
    """`outcome` is ``equal``, ``documented``, ``refused`` or ``DIFFERENT``; `why` explains ``DIFFERENT``."""

    statement: Statement
    outcome: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.statement.place}: {self.statement.text}\n{self.why}"


@dataclass
class Tally:
    """All verdicts of a session."""

    verdicts: list[Verdict] = field(default_factory=list)
    generated: Counter[str] = field(default_factory=Counter)

    def is_used(self) -> bool:
        return bool(self.verdicts or self.generated)

    def summary(self) -> str:
        counts = Counter(one.outcome for one in self.verdicts) + self.generated
        words = ("equal", "documented", "refused", "DIFFERENT")
        return f"{counts.total()} statements: " + ", ".join(f"{counts[word]} {word.lower()}" for word in words)


def run_scenario(scenario: Scenario, databases: Sequence[Database], way: str) -> list[Pair]:
    """Both answers to each statement, in order, beginning with an empty schema on both servers."""
    answers: list[list[Answer]] = []
    for database in databases:
        database.clean()
        with database.connect() as connection:
            answers.append([run_statement(connection.pgconn, one, way) for one in scenario.statements])
    return [Pair(way, one, other) for one, other in zip(*answers, strict=True)]


def run_statement(connection: PGconn, statement: Statement, way: str) -> Answer:
    """A statement sent in one of `WAYS`."""
    if connection.status == pq.ConnStatus.BAD:
        return Answer(sqlstate="lost", message="the connection was lost before")
    if way == "text" and not statement.parameters:
        return simple(connection, statement.text)
    return extended(connection, statement.text, statement.parameters, binary=way == "binary")


def judge(statement: Statement, pairs: Sequence[Pair], known: Collection[str]) -> Verdict:
    """The outcome for a statement sent in several ways; a wrong mark makes it DIFFERENT.

    Args:
        known: ids of the rows of the documentation.
    """
    differing = [(pair, found) for pair in pairs if (found := differences(pair.postgresql, pair.here, statement.text))]
    shown = "\n".join(
        f"  {pair.way} ({', '.join(found)})\n    PostgreSQL: {pair.postgresql}\n    here:       {pair.here}" for pair, found in differing
    )
    if any(pair.here.sqlstate == "lost" for pair in pairs):
        return Verdict(statement, "DIFFERENT", shown)
    match statement.mark:
        case "":
            return Verdict(statement, "DIFFERENT", shown) if differing else Verdict(statement, "equal")
        case "fault":
            return Verdict(statement, "DIFFERENT", f"{shown or '  it is equal now'}\n  it is marked as a fault")
        case "documented" if statement.detail not in known:
            return Verdict(statement, "DIFFERENT", f"  docs/sql.md has no row {statement.detail!r} in its table of differences")
    if not differing:
        return Verdict(statement, "DIFFERENT", f"  it is marked as {statement.mark}, but both answers are equal: remove the mark")
    if statement.mark == "refused":
        unclear = [pair for pair, _ in differing if not is_refusal(pair.postgresql, pair.here, statement.detail)]
        if unclear:
            return Verdict(statement, "DIFFERENT", f"{shown}\n  it is marked as refused: one of {REFUSALS} that names {statement.detail!r}")
    return Verdict(statement, statement.mark)


def compare_scenario(scenario: Scenario, databases: Sequence[Database], known: Collection[str]) -> list[Verdict]:
    """A verdict for each statement of a scenario, over all ways."""
    runs = [run_scenario(scenario, databases, way) for way in WAYS]
    return [judge(statement, pairs, known) for statement, *pairs in zip(scenario.statements, *runs, strict=True)]
