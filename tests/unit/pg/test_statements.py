"""Preparing statements: where a long text is worked on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import apsw

from tests.unit.pg.local_engine import LocalSession
from triplicate.sql.core.interface import Result
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.protocol.plans import LONG_TEXT, PlanCache
from triplicate.sql.pg.protocol.prepared_statements import prepare_statement


class Watched(LocalSession):
    """Notes what is computed aside."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self.computed: list[str] = []

    async def offload(self, function: Callable[..., Result], *arguments: Any) -> Result:
        self.computed.append(function.__name__)
        return function(*arguments)


def prepared(text: str) -> list[str]:
    """What is computed aside while a statement on table t is prepared."""

    async def body() -> list[str]:
        connection = apsw.Connection(":memory:")
        connection.execute("create table t(id integer primary key, name text)")
        session = Watched(connection)
        statement = await prepare_statement(session, statement_of(text), (), PlanCache(), is_fixed=False)
        assert statement.plan.prepared is not None
        return session.computed

    return asyncio.run(body())


def test_every_step_over_a_long_text_leaves_the_loop_free() -> None:
    rows = ", ".join(f"({number}, 'name')" for number in range(LONG_TEXT // 10))
    assert prepared(f"insert into t(id, name) values {rows}") == ["parse_statement", "translate"]


def test_a_short_text_costs_no_switch_of_threads() -> None:
    assert prepared("insert into t(id, name) values ($1, $2)") == []
