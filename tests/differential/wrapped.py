"""Queries of the corpus through a view, in WITH, by a trigger, with parameters, and as a table that is made from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from psycopg import pq
from psycopg.pq.abc import PGconn

from tests.differential.comparison import Answer, class_of, differences, extended, simple
from tests.differential.corpus import Parameter, Scenario, Statement
from tests.differential.runner import Verdict, run_statement
from tests.differential.servers import Database
from triplicate.sql.core.lexer import quote, statement_of

NAME = "wrapped"
_QUERY = re.compile(r"\s*(select|with|values)\b", re.IGNORECASE)
_CHANGE = re.compile(r"\s*(insert|update|delete)\b", re.IGNORECASE)
_LEFT_OUT = re.compile(
    r"\bfor\s+(update|share|no)\b|\bpg_|information_schema|random|uuid|has_table_privilege|'-0'|\bas\s+of\b", re.IGNORECASE
)
"""Locks, the catalogue, values that differ from one run to the next, and the float -0, which columns do not keep."""


class Wrapping(NamedTuple):
    """The statements that use a query: what is made of it, the use, and what removes it again. `{names}` are the columns of its result."""

    kind: str
    make: Sequence[str]
    use: str
    remove: Sequence[str]


_BY_TRIGGER = (f"CREATE TABLE {NAME} AS {{}}", f"DELETE FROM {NAME}", f"CREATE TABLE {NAME}_event(a int)")
_FIRED = f"INSERT INTO {NAME}_event VALUES (1)"
_FUNCTION = f"CREATE FUNCTION {NAME}() RETURNS trigger LANGUAGE plpgsql AS $w$ BEGIN INSERT INTO {NAME} {{}}; RETURN NULL; END $w$"
_TRIGGERS = (
    (_FUNCTION, f"CREATE TRIGGER {NAME} AFTER INSERT ON {NAME}_event EXECUTE FUNCTION {NAME}()"),
    (f"CREATE TRIGGER {NAME} AFTER INSERT ON {NAME}_event BEGIN INSERT INTO {NAME} {{}}; END",),
)
_DROPPED = (f"DROP TABLE {NAME}_event", f"DROP TABLE {NAME}")
DECLARED = ({"string": "?", "integer": "?", "decimal": "?"}, {"string": "text", "integer": "int4", "decimal": "numeric"})
_NOT_WITH_PARAMETERS = re.compile(r"\b(order|group|by)\s+by\b[^)]*\b\d|\blimit\b|\boffset\b|\bfloat4\b|\breal\b", re.IGNORECASE)
"""A parameter does not name a column by its number, and LIMIT takes any rows; docs/sql.md, `real-width`."""
_ZEROS = re.compile(r"(?<=\d)\.0+(?!\d)|(?<=\d)(\.\d*[1-9])0+(?!\d)")
WRAPPINGS: Sequence[Sequence[Wrapping]] = [
    [
        Wrapping("view", [f"CREATE VIEW {NAME} AS {{}}"], f"SELECT * FROM {NAME}", [f"DROP VIEW {NAME}"]),
        Wrapping("query", [], f"WITH {NAME} AS ({{}}) SELECT * FROM {NAME}", []),
        Wrapping("names", [], f"SELECT {{names}} FROM ({{}}) {NAME}", []),
        Wrapping("names in WITH", [], f"WITH {NAME} AS ({{}}) SELECT {{names}} FROM {NAME}", []),
        Wrapping("table", [f"CREATE TABLE {NAME} AS {{}}"], f"SELECT * FROM {NAME}", [f"DROP TABLE {NAME}"]),
        Wrapping("trigger", [*_BY_TRIGGER, *trigger, _FIRED], f"SELECT * FROM {NAME}", [*_DROPPED, *functions]),
    ]
    for trigger, functions in zip(_TRIGGERS, ([f"DROP FUNCTION {NAME}"], []), strict=True)
]
"""For PostgreSQL, and for ours."""


def is_wrapped(statement: Statement, answers: Sequence[Answer]) -> bool:
    """Whether a statement of the corpus is a query that both servers answer alike."""
    if statement.mark or statement.parameters or any(answer.sqlstate is not None for answer in answers):
        return False
    return _QUERY.match(statement.text) is not None and _LEFT_OUT.search(statement.text) is None


def is_change(statement: Statement) -> bool:
    """Whether a statement of the corpus changes rows, alike on both servers."""
    if statement.mark or statement.parameters or _CHANGE.match(statement.text) is None:
        return False
    return re.search(r"\breturning\b|\bon conflict\b|16777217", statement.text, re.IGNORECASE) is None


def use(connection: PGconn, statement: Statement, wrapping: Wrapping, names: Sequence[str] = ()) -> Answer:
    """The answer of one server to a query that is used in this way."""
    done = 0
    for command in wrapping.make:
        made = simple(connection, command.format(statement.text))
        if made.sqlstate is not None:
            break
        done += 1
    else:
        made = simple(connection, wrapping.use.format(statement.text, names=", ".join(map(quote, names))))
    for command in wrapping.remove if done else ():
        removed = simple(connection, command)
        assert removed.sqlstate is None or done < len(wrapping.make), f"{statement}: {command}: {removed}"
    return made


def with_parameters(statement: Statement, declared: Mapping[str, str]) -> Statement | None:
    """The query with a parameter in place of each constant; None if it has none.

    Args:
        declared: the types of the parameters, by the kind of the constant: ``string``, ``integer`` and ``decimal``.
    """
    text, parameters, reached = "", list[Parameter](), 0
    for token in statement_of(statement.text).tokens:
        if token.kind not in ("string", "number") or not token.text.lstrip("'").isascii() or token.text[0] not in "'0123456789":
            continue
        kind = "string" if token.kind == "string" else "integer" if token.text.isdecimal() else "decimal"
        parameters.append(Parameter(declared[kind], token.string() if kind == "string" else token.text))
        text += f"{statement.text[reached : token.start]}${len(parameters)}"
        reached = token.end
    return replace(statement, text=text + statement.text[reached:], parameters=tuple(parameters)) if parameters else None


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
        # A rollback does not give back numbers of sequences, and the time goes on.
        is_repeatable = not any(re.search(r"(?i)serial|identity|default (now|current)", one.text) for one in scenario.statements)
        for statement in scenario.statements:
            is_idle = all(connection.transaction_status == pq.TransactionStatus.IDLE for connection in connections)
            if is_idle and is_repeatable and is_change(statement):
                yield from _with_parameters(replace(statement, text=f"{statement.text} RETURNING *"), connections)
            answers = [run_statement(connection, statement, "text") for connection in connections]
            is_idle = all(connection.transaction_status == pq.TransactionStatus.IDLE for connection in connections)
            if is_idle and is_wrapped(statement, answers):
                yield from _uses(statement, answers[0].names, connections)


def _uses(statement: Statement, names: Sequence[str], connections: Sequence[PGconn]) -> Iterator[Verdict]:
    are_unique = len({name.lower() for name in names}) == len(names) > 0
    for wrappings in zip(*WRAPPINGS, strict=True):
        if "names" in wrappings[0].kind and not are_unique:
            continue
        answers = [use(connection, statement, wrapping, names) for connection, wrapping in zip(connections, wrappings, strict=True)]
        verdict = compare_answers(statement, wrappings[0].kind, *answers)
        if verdict is not None:
            yield verdict
    yield from _with_parameters(statement, connections)


def _with_parameters(statement: Statement, connections: Sequence[PGconn]) -> Iterator[Verdict]:
    """The verdicts for a statement with parameters. Its changes are undone."""
    for declared in DECLARED:
        changed = with_parameters(statement, declared)
        if changed is not None and _NOT_WITH_PARAMETERS.search(statement.text) is None:
            answers = []
            for connection in connections:
                simple(connection, "BEGIN")
                answers.append(extended(connection, changed.text, changed.parameters, binary=False))
                simple(connection, "ROLLBACK")
            answers = [_unpadded(answer) for answer in answers]
            verdict = compare_answers(changed, f"parameters {[one.value for one in changed.parameters]}", *answers)
            if verdict is not None:
                yield verdict


def _normal(answer: Answer) -> Answer:
    """An answer whose numerics are without zeros at their ends, and with 15 digits: docs/sql.md, `numeric-scale`, `numeric-digits`."""
    if answer.sqlstate is not None:
        return answer
    is_numeric = [class_of(oid) in ("numeric", "float") for oid in answer.types]
    rows = tuple(tuple(_shortened(value) if short else value for value, short in zip(row, is_numeric, strict=True)) for row in answer.rows)
    return Answer("", answer.names, answer.types, rows)


def _unpadded(answer: Answer) -> Answer:
    """An answer without the scales of numerics and the blanks of CHAR: docs/sql.md, `numeric-scale` and `char-padding`."""
    rows = (tuple(_ZEROS.sub(r"\1", value).rstrip(" ") if isinstance(value, str) else value for value in row) for row in answer.rows)
    return replace(answer, names=tuple(name.lower() for name in answer.names), rows=tuple(rows))


def _shortened(value: object) -> object:
    try:
        return None if value is None else f"{float(str(value)):.14g}"
    except ValueError:
        return value
