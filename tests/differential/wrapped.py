"""Queries of the corpus through a view, through a common table expression, and through a table that is made from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from psycopg import pq
from psycopg.pq.abc import PGconn

from tests.differential.comparison import Answer, class_of, differences, simple
from tests.differential.corpus import Scenario, Statement
from tests.differential.runner import Verdict, run_statement
from tests.differential.servers import Database

NAME = "wrapped"
_QUERY = re.compile(r"\s*(select|with|values)\b", re.IGNORECASE)
_LEFT_OUT = re.compile(
    r"\bfor\s+(update|share|no)\b|\bpg_|information_schema|random|uuid|has_table_privilege|'-0'|\bas\s+of\b", re.IGNORECASE
)
"""Locks, the catalogue, values that differ from one run to the next, and the float -0, which columns do not keep."""


class Wrapping(NamedTuple):
    """The statements that use a query: what is made of it, the use, and what removes it again."""

    kind: str
    make: str
    use: str
    remove: str


WRAPPINGS = (
    Wrapping("view", f"CREATE VIEW {NAME} AS {{}}", f"SELECT * FROM {NAME}", f"DROP VIEW {NAME}"),
    Wrapping("query", "", f"WITH {NAME} AS ({{}}) SELECT * FROM {NAME}", ""),
    Wrapping("table", f"CREATE TABLE {NAME} AS {{}}", f"SELECT * FROM {NAME}", f"DROP TABLE {NAME}"),
)


def is_wrapped(statement: Statement, answers: Sequence[Answer]) -> bool:
    """Whether a statement of the corpus is a query that both servers answer alike."""
    if statement.mark or statement.parameters or any(answer.sqlstate is not None for answer in answers):
        return False
    return _QUERY.match(statement.text) is not None and _LEFT_OUT.search(statement.text) is None


def compare_wrapped(statement: Statement, connections: Sequence[PGconn], wrapping: Wrapping) -> Verdict | None:
    """The verdict for a query used in this way; None where PostgreSQL refuses the use."""
    answers: list[Answer] = []
    for connection in connections:
        made = simple(connection, wrapping.make.format(statement.text)) if wrapping.make else Answer()
        used = simple(connection, wrapping.use.format(statement.text)) if made.sqlstate is None else made
        if wrapping.remove and made.sqlstate is None:
            removed = simple(connection, wrapping.remove)
            assert removed.sqlstate is None, f"{statement}: {wrapping.remove}: {removed}"
        answers.append(used)
    return compare_answers(statement, wrapping.kind, *answers)


def compare_answers(statement: Statement, kind: str, postgresql: Answer, here: Answer) -> Verdict | None:
    """The verdict for one use; None where PostgreSQL refuses it."""
    if postgresql.sqlstate is not None:
        return None
    if here.sqlstate == "0A000" or "more digits than can be stored" in here.message:
        return Verdict(statement, "refused", f"  {kind}: {here}")
    found = differences(_normal(postgresql), _normal(here), "")
    if not found:
        return Verdict(statement, "equal")
    return Verdict(statement, "DIFFERENT", f"  {kind} ({', '.join(found)})\n    PostgreSQL: {postgresql}\n    here:       {here}")


def wrapped_verdicts(scenario: Scenario, databases: Sequence[Database]) -> Iterator[Verdict]:
    """Run a scenario, and each of its queries in all ways."""
    for database in databases:
        database.clean()
    with databases[0].connect() as postgresql, databases[1].connect() as here:
        connections = (postgresql.pgconn, here.pgconn)
        for statement in scenario.statements:
            answers = [run_statement(connection, statement, "text") for connection in connections]
            is_idle = all(connection.transaction_status == pq.TransactionStatus.IDLE for connection in connections)
            if is_idle and is_wrapped(statement, answers):
                verdicts = (compare_wrapped(statement, connections, wrapping) for wrapping in WRAPPINGS)
                yield from (verdict for verdict in verdicts if verdict is not None)


def _normal(answer: Answer) -> Answer:
    """An answer whose numerics are without zeros at their ends, and with 15 digits: docs/sql.md, `numeric-scale`, `numeric-digits`."""
    if answer.sqlstate is not None:
        return answer
    is_numeric = [class_of(oid) in ("numeric", "float") for oid in answer.types]
    rows = tuple(tuple(_shortened(value) if short else value for value, short in zip(row, is_numeric, strict=True)) for row in answer.rows)
    return Answer("", answer.names, answer.types, rows)


def _shortened(value: object) -> object:
    try:
        return None if value is None else f"{float(str(value)):.14g}"
    except ValueError:
        return value
