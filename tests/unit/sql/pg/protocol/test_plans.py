"""The cache of plans: its bounds, and the changes of the schema that end what it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import apsw
import pytest

from tests.unit.sql.pg.local_engine import LocalSession
from tests.unit.sql.pg.raw_client import SYNC, RawClient, bind, execute, parse, query
from tests.unit.sql.pg.server_rig import Served, play
from triplicate.errors import SqlError
from triplicate.sql.core.interface import Prepared, Result, TransactionStatus
from triplicate.sql.core.lexer import Token, statement_of
from triplicate.sql.core.schema_cache import LONG_TEXT, MAX_STATEMENT_BYTES
from triplicate.sql.pg.protocol.commands import EngineStatement
from triplicate.sql.pg.protocol.plans import (
    PlanCache,
    StatementPlan,
    parse_statement,
    plan_statement,
    split_query,
    with_type_of_point,
)
from triplicate.sql.pg.protocol.prepared_statements import prepare_statement
from triplicate.sql.pg.syntax.as_of_clause import AsOfClause
from triplicate.sql.pg.syntax.dml_nodes import DmlStatement
from triplicate.sql.pg.syntax.statement_parser import parse as parse_tokens
from triplicate.sql.pg.translate import translation
from triplicate.sql.pg.values import types

PLAN = StatementPlan(EngineStatement(statement_of("select 1")), None)
INSERT = "insert into t(a) values ($1)"


class CountingSession(LocalSession):
    """Counts the statements that reach the engine, and the questions for a table's columns."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self.prepared = 0
        self.asked = 0
        self.before_prepare: Callable[[], object] = lambda: None

    async def prepare(self, sql: str) -> Prepared:
        self.prepared += 1
        self.before_prepare()
        return await super().prepare(sql)

    async def table_columns(self, table: str) -> list[tuple[str, str]] | None:
        self.asked += 1
        return await super().table_columns(table)


def with_session(body: Callable[[CountingSession, PlanCache], Awaitable[None]]) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute("create table t(a int)")
    asyncio.run(asyncio.wait_for(_run(body, connection), 30))


async def _run(body: Callable[[CountingSession, PlanCache], Awaitable[None]], connection: apsw.Connection) -> None:
    await body(CountingSession(connection), PlanCache())


def test_a_text_that_was_planned_before_asks_the_engine_nothing() -> None:
    async def body(session: CountingSession, cache: PlanCache) -> None:
        first = await plan_statement(session, statement_of(INSERT), (), cache, session.schema_version)
        assert await plan_statement(session, statement_of(INSERT), (), cache, session.schema_version) is first
        assert (session.prepared, session.asked) == (1, 1)
        assert (await plan_statement(session, statement_of(INSERT), (23,), cache, session.schema_version)).parameter_oids == (23,)

    with_session(body)


def test_a_change_of_the_schema_empties_the_cache() -> None:
    async def body(session: CountingSession, cache: PlanCache) -> None:
        first = await plan_statement(session, statement_of(INSERT), (), cache, session.schema_version)
        session._connection.execute("drop table t; create table t(a text)")
        second = await plan_statement(session, statement_of(INSERT), (), cache, session.schema_version)
        assert (first.parameter_oids, second.parameter_oids) == ((20,), (25,))
        assert len(cache) == 1

    with_session(body)


def test_a_plan_of_a_schema_that_has_changed_meanwhile_is_not_kept() -> None:
    async def body(session: CountingSession, cache: PlanCache) -> None:
        cache.get(1, "", ())
        cache.get(2, "", ())
        cache.add(1, INSERT, (), PLAN)
        assert cache.get(2, INSERT, ()) is None
        session.before_prepare = lambda: session._connection.execute("alter table t add b")
        await plan_statement(session, statement_of(INSERT), (), cache, session.schema_version)
        session.before_prepare = lambda: None
        await plan_statement(session, statement_of(INSERT), (), cache, session.schema_version)
        assert session.prepared == 2

    with_session(body)


def test_a_transaction_uses_no_plan_of_others_and_leaves_none() -> None:
    async def body(session: CountingSession, cache: PlanCache) -> None:
        await plan_statement(session, statement_of(INSERT), (), cache, session.schema_version)
        session.status = TransactionStatus.ACTIVE
        session._connection.execute("begin; drop table t; create table t(a text)")
        assert (await plan_statement(session, statement_of(INSERT), (), cache, session.schema_version)).parameter_oids == (25,)
        session._connection.execute("rollback")
        session.status = TransactionStatus.IDLE
        assert (await plan_statement(session, statement_of(INSERT), (), cache, session.schema_version)).parameter_oids == (20,)

    with_session(body)


@pytest.mark.parametrize("made", ["create table pg_settings(name, v)", "create view pg_settings as select a from t"])
def test_a_users_table_that_hides_one_of_the_catalogue_is_named(made: str) -> None:
    async def body(session: CountingSession, cache: PlanCache) -> None:
        session._connection.execute(made)
        with pytest.raises(SqlError, match="has the name of the catalogue's pg_settings, and hides it") as refused:
            await plan_statement(session, statement_of("select name from pg_settings"), (), cache, session.schema_version)
        assert refused.value.sqlstate == "42939"

    with_session(body)


def test_the_cache_forgets_the_plan_that_was_used_longest_ago() -> None:
    cache = PlanCache(limit=2)
    cache.get(1, "a", ())
    cache.add(1, "a", (), PLAN)
    cache.add(1, "b", (), PLAN)
    assert cache.get(1, "a", ()) is PLAN
    cache.add(1, "c", (), PLAN)
    assert [cache.get(1, text, ()) for text in ("a", "b", "c")] == [PLAN, None, PLAN]
    cache.add(1, "x" * (LONG_TEXT + 1), (), PLAN)
    assert len(cache) == 2


def test_a_text_means_what_the_schema_of_its_parse_says() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table t(a int); insert into t values (1)"))
        for _round in range(2):
            assert await client.send(parse("select a from t"), bind(), execute(), SYNC) == ["1", "2", "D 1", "C SELECT 1", "Z I"]
            assert await client.send(parse(INSERT), bind(b"2.50"), execute(), SYNC) == ["1", "E ERROR 22P02", "Z I"]
        await client.send(query("alter table t rename to t1; create table t(a numeric(10,2)); insert into t values (1)"))
        assert await client.send(parse("select a from t"), bind(), execute(), SYNC) == ["1", "2", "D 1.00", "C SELECT 1", "Z I"]
        assert await client.send(parse(INSERT), bind(b"2.50"), execute(), SYNC) == ["1", "2", "C INSERT 0 1", "Z I"]

    play(body)


def test_a_copy_that_was_replaced_leaves_no_plans() -> None:
    async def body(client: RawClient, served: Served) -> None:
        await client.send(query("create table t(a int); insert into t values (1)"))
        await client.send(parse("select a from t"), SYNC)
        first = served.server.connections.plans_of(served.database)
        assert len(first) > 0
        assert served.server.connections.plans_of(served.database) is first
        served.database.generation += 1
        assert len(served.server.connections.plans_of(served.database)) == 0

    play(body)


# Long texts.


class OffloadingSession(LocalSession):
    """Records the functions that run on another thread."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self.offloaded: list[str] = []

    async def offload(self, function: Callable[..., Result], *arguments: Any) -> Result:
        self.offloaded.append(function.__name__)
        return function(*arguments)


def offloaded(text: str) -> list[str]:
    """The functions that run on another thread while a statement on table t is prepared."""

    async def body() -> list[str]:
        connection = apsw.Connection(":memory:")
        connection.execute("create table t(id integer primary key, name text)")
        session = OffloadingSession(connection)
        statement = await prepare_statement(session, statement_of(text), (), PlanCache(), is_fixed=False)
        assert statement.plan.prepared is not None
        return session.offloaded

    return asyncio.run(body())


def test_every_step_over_a_long_text_leaves_the_loop_free() -> None:
    rows = ", ".join(f"({number}, 'name')" for number in range(LONG_TEXT // 10))
    assert offloaded(f"insert into t(id, name) values {rows}") == ["parse_statement", "search", "translate"]


def test_a_long_text_is_parsed_once_and_means_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []

    def parse_counted(tokens: Sequence[Token], size: int) -> DmlStatement | None:
        parsed.append(size)
        return parse_tokens(tokens, size)

    monkeypatch.setattr(translation, "parse", parse_counted)
    rows = ", ".join("(1.0)" for _ in range(LONG_TEXT // 5))

    async def body(session: CountingSession, cache: PlanCache) -> None:
        plans = [await plan_statement(session, statement_of(f"insert into t(a) values {rows}"), (), cache, (0, 0)) for _ in range(2)]
        assert plans[0] == plans[1]
        assert len(parsed) == len(plans)

    with_session(body)


def test_no_tree_of_a_statement_that_is_remembered_is_handed_on() -> None:
    _, tree = translation.parse_tables(statement_of("insert into t(a) values (1)" + " " * (LONG_TEXT - 27)))
    assert tree is None, "a translation changes its tree, and the parsed statement is used again"


def test_no_tree_is_remembered_of_a_statement_that_its_rewriting_makes_long() -> None:
    text = "select index from t"
    statement = statement_of(text.replace(" ", " " * (LONG_TEXT - len(text) + 1), 1))
    parsed = parse_statement(statement)
    assert isinstance(parsed.command, EngineStatement)
    assert len(statement.sql) == LONG_TEXT < len(parsed.command.text)
    assert parsed.tree is None


def test_a_short_text_costs_no_switch_of_threads() -> None:
    assert offloaded("insert into t(id, name) values ($1, $2)") == []


def test_only_a_change_of_constants_that_runs_at_once_is_not_examined() -> None:
    async def body(session: CountingSession, cache: PlanCache) -> None:
        async def examined(sql: str) -> bool:
            before = session.prepared
            plan = await plan_statement(session, statement_of(sql), (), cache, session.schema_version, runs_at_once=True)
            assert (plan.unexamined is None) is (session.prepared > before)
            return session.prepared > before

        assert not await examined("insert into t(a) values (1)")
        assert not await examined("update t set a = 2 where a = 1")
        assert not await examined("delete from t")
        assert await examined("insert into t(a) values ($1)")
        assert await examined("insert into t(a) values (1) returning a")
        assert await examined("insert into t(a) values (now())")
        assert await examined("select 1 from t")
        assert len(cache) == 4

    with_session(body)


def test_a_change_that_was_not_examined_is_remembered_once_it_has_run() -> None:
    async def body(client: RawClient, s: Served) -> None:
        sql = "insert into t values (1)"
        await client.send(query("create table t(a int primary key)"))
        assert await client.send(query("insert into t values (1, 2)"), query(sql), query(sql)) == [
            "E ERROR XX000",
            "Z I",
            "C INSERT 0 1",
            "Z I",
            "E ERROR 23505",
            "Z I",
        ]
        assert await client.send(query("delete from t"), parse(sql), bind(), execute(), SYNC) == [
            "C DELETE 1",
            "Z I",
            "1",
            "2",
            "C INSERT 0 1",
            "Z I",
        ]

    play(body)


def test_the_point_of_a_query_has_a_type_unless_the_client_declares_one() -> None:
    assert with_type_of_point(AsOfClause("position", parameter=2), ()) == (0, types.INT8)
    assert with_type_of_point(AsOfClause("time", parameter=1), (0, types.TEXT)) == (types.TIMESTAMPTZ, types.TEXT)
    assert with_type_of_point(AsOfClause("time", parameter=1), (types.DATE,)) == (types.DATE,)
    assert with_type_of_point(AsOfClause("position", "7"), (types.TEXT,)) == (types.TEXT,)


def test_a_statement_that_is_too_long_is_refused_before_it_is_parsed() -> None:
    async def body(session: CountingSession, _cache: PlanCache) -> None:
        accepted = "select '" + "x" * (MAX_STATEMENT_BYTES - 9) + "'"
        assert len(await split_query(session, f"{accepted}; select 1")) == 2
        with pytest.raises(SqlError) as refused:
            await split_query(session, f"select 1; {accepted[:-1]}xx'")
        assert refused.value.sqlstate == "54000"

    with_session(body)


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("update nosuch set v = 1 where rowid = 'b'", "42P01"),
        ("select 'x'::int from nosuch", "42P01"),
        ("select 'x'::int from t, nosuch", "42P01"),
        ("with nosuch as (select 1 as a) select 'x'::int from nosuch", "22P02"),
        ("select 'x'::int from t", "22P02"),
        ("select a is true is distinct from 1 is null from nosuch", "42601"),
    ],
)
def test_a_table_that_does_not_exist_is_reported_first(sql: str, sqlstate: str) -> None:
    async def body(session: CountingSession, cache: PlanCache) -> None:
        with pytest.raises(SqlError) as refused:
            await plan_statement(session, statement_of(sql), (), cache, session.schema_version)
        assert refused.value.sqlstate == sqlstate

    with_session(body)
