"""Statements of PostgreSQL's clients on a leader's file, and what a follower makes of them, without a cluster."""

from __future__ import annotations

import pytest

from tests.property.rowlog_workload import Pair, contents
from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.executor.short_reads import refresh_schema
from triplicate.sql.executor.statement_batches import AutocommitRequest
from triplicate.sql.pg.ddl.definition_rewriter import rewrite_definition


def send(pair: Pair, *statements: str) -> list[tuple[Value, ...]]:
    """Run each as a client's statement, apply it on the follower; the rows of the last."""
    found: list[tuple[Value, ...]] = []
    for sql in statements:
        text = rewrite_definition(statement_of(sql)).text if sql.split()[0].upper() in ("CREATE", "ALTER", "DROP") else sql
        refresh_schema(pair.reader)
        pending = pair.writer.run_batch([AutocommitRequest(pair.gate.examine(text), ())])
        answer = pending.answers[0]
        if answer.error is not None:
            pair.writer.rollback()
            raise answer.error
        pair.send(pending)
        found = list(answer.outcome.rows) if answer.outcome is not None else []
    return found


def refused(pair: Pair, sql: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        send(pair, sql)
    return caught.value


def same(pair: Pair) -> None:
    assert contents(pair.paths[0]) == contents(pair.paths[1])
