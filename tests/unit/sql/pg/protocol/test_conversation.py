"""Messages in orders that few clients send, and what PostgreSQL 15 answers to them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.sql.pg.local_engine import LocalSession
from tests.unit.sql.pg.raw_client import SYNC, RawClient, bind, describe, execute, parse, query
from tests.unit.sql.pg.server_rig import Served, play, run
from triplicate.sql.core.interface import Prepared
from triplicate.sql.engine.cursors import RowsCursor

SERIES = "with recursive s(v) as (select 1 union all select v + 1 from s where v < 5) select v from s"


def test_each_execute_counts_the_rows_that_it_sent() -> None:
    async def body(client: RawClient, _: Served) -> None:
        answers = await client.send(parse(SERIES), bind(), execute(rows=3), execute(), execute(), SYNC)
        assert answers == ["1", "2", "D 1", "D 2", "D 3", "s", "D 4", "D 5", "C SELECT 2", "C SELECT 0", "Z I"]
        await client.send(query("create table t(a int primary key)"))
        answers = await client.send(parse("insert into t values (1), (2) returning a"), bind(), execute(rows=1), execute(), SYNC)
        assert answers == ["1", "2", "D 1", "s", "D 2", "C INSERT 0 1", "Z I"]

    play(body)


@pytest.mark.parametrize("statement", ["insert into t values (1)", "set application_name = 'x'"])
def test_what_has_run_and_gives_no_rows_is_not_run_again(statement: str) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table t(a int)"))
        answers = await client.send(parse(statement), bind(), execute(), execute(), SYNC)
        assert answers[3:] == ["E ERROR 55000", "Z I"]
        assert (await client.send(query("select count(*) from t")))[1] == "D 0"

    play(body)


def test_a_format_that_does_not_exist_is_refused() -> None:
    async def body(client: RawClient, _: Served) -> None:
        assert await client.send(parse("select $1::text"), bind(b"x", formats=[2]), SYNC) == ["1", "E ERROR 22023", "Z I"]
        assert (await client.send(parse("select $1::text"), bind(b"x", results=[-1]), execute(), SYNC))[-2:] == ["E ERROR 22023", "Z I"]

    play(body)


@pytest.mark.parametrize("sent", [b"", b"\1\1"])
def test_a_boolean_in_binary_is_one_byte(sent: bytes) -> None:
    async def body(client: RawClient, _: Served) -> None:
        assert await client.send(parse("select $1::bool"), bind(sent, formats=[1]), SYNC) == ["1", "E ERROR 22P03", "Z I"]
        assert (await client.send(query("select 1")))[1] == "D 1"

    play(body)


def test_savepoints_need_a_transaction_block() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table t(a int)"))
        answers = await client.send(query("insert into t values (1); savepoint a; select 1"))
        assert answers == ["C INSERT 0 1", "E ERROR 25P01", "Z I"]
        assert (await client.send(query("select count(*) from t")))[1] == "D 0"

    play(body)


# Statements that outlive a change of the schema.


def test_a_prepared_statement_means_what_its_text_means_now() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table t(a int, b text)"))
        await client.send(parse("insert into t(a) values (1.5)", "insert"), SYNC)
        await client.send(parse("select a from t where b = '2024-1-5'", "select"), SYNC)
        await client.send(query("alter table t rename to t1; create table t(a numeric(10,2), b date)"))
        assert await client.send(bind(statement="insert"), execute(), SYNC) == ["2", "C INSERT 0 1", "Z I"]
        assert (await client.send(query("select a from t")))[1] == "D 1.50"
        await client.send(query("alter table t rename to t2; create table t(a int, b date); insert into t values (7, '2024-01-05')"))
        assert await client.send(bind(statement="select"), execute(), SYNC) == ["2", "D 7", "C SELECT 1", "Z I"]

    play(body)


@pytest.mark.parametrize(
    ("statement", "change"),
    [
        ("select a from t", "alter table t rename to t1; create table t(a bool, b text)"),
        ("select * from t", "alter table t add c int"),
        ("select * from t", "alter table t rename b to c"),
        ("update t set a = 2 returning *", "alter table t add c int"),
    ],
)
def test_a_result_of_other_columns_than_the_client_knows_is_refused(statement: str, change: str) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table t(a int, b text); insert into t values (1, 'x')"))
        await client.send(parse(statement, "s"), SYNC)
        await client.send(query(change))
        assert await client.send(bind(statement="s"), execute(), SYNC) == ["E ERROR 0A000", "Z I"]
        assert await client.send(describe("s"), SYNC) == ["E ERROR 0A000", "Z I"]
        assert (await client.send(query("select count(*) from t where a = 2")))[1] == "D 0"

    play(body)


def test_a_portal_made_before_a_change_of_the_schema_runs_as_its_text_means_then() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("begin; create table t(a int)"))
        await client.send(parse("insert into t values (1.5)"), bind(portal="p"), SYNC)
        await client.send(query("alter table t rename to t1; create table t(a numeric(10,2))"))
        assert await client.send(execute("p"), SYNC) == ["C INSERT 0 1", "Z T"]
        assert (await client.send(query("select a from t")))[1] == "D 1.50"

    play(body)


def test_a_change_that_meets_another_schema_when_its_turn_comes_is_prepared_again() -> None:
    async def body(client: RawClient, s: Served) -> None:
        await client.send(query("create table t(a int)"))
        session = s.database.sessions[-1]
        session.moved_before = {session.started + 1, session.started + 2}
        assert await client.send(query("insert into t values (1)")) == ["C INSERT 0 1", "Z I"]
        session.moved_before = {session.started + number for number in range(1, 10)}
        assert await client.send(query("insert into t values (1)")) == ["E ERROR 40001", "Z I"]
        session.moved_before = set()
        assert (await client.send(query("select count(*) from t")))[1] == "D 1"

    play(body)


# Parameters of the session.


def test_discard_forgets_only_what_it_names() -> None:
    async def body(client: RawClient, s: Served) -> None:
        await client.send(query("set my.x = 'kept'"), query("set triplicate.request_id = 'r'"), parse("select 1", "s"), SYNC)
        for what in ("plans", "sequences", "temp"):
            assert await client.send(query(f"discard {what}")) == [f"C DISCARD {what.upper()}", "Z I"]
        assert await client.send(describe("s"), SYNC, query("show my.x")) == [
            "t",
            "T ?column?:20",
            "Z I",
            "T my.x:25",
            "D kept",
            "C SHOW",
            "Z I",
        ]
        assert s.database.sessions[-1].request_ids == ["r"]
        assert await client.send(query("begin; discard all")) == ["C BEGIN", "E ERROR 25001", "Z E"]
        assert await client.send(query("rollback"), query("discard all")) == ["C ROLLBACK", "Z I", "C DISCARD ALL", "Z I"]
        assert await client.send(describe("s"), SYNC) == ["E ERROR 26000", "Z I"]

    play(body)


def test_a_transaction_is_read_only_by_its_parameter_as_well() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table t(a int)"))
        for said in ("set transaction_read_only = on", "set local transaction_read_only to true"):
            await client.send(query("begin"), query(said))
            assert await client.send(query("insert into t values (1)")) == ["E ERROR 25006", "Z E"]
            await client.send(query("rollback"))
        assert await client.send(query("insert into t values (1)")) == ["C INSERT 0 1", "Z I"]

    play(body)


def test_what_show_and_set_config_answer() -> None:
    async def body(client: RawClient, _: Served) -> None:
        assert await client.send(query("show TIMEZONE")) == ["T TimeZone:25", "D UTC", "C SHOW", "Z I"]
        assert await client.send(query("show nope")) == ["E ERROR 42704", "Z I"]
        answers = await client.send(query("select set_config('my.x', 'v', true)"), query("select current_setting('my.x', true) x"))
        assert answers == ["T set_config:25", "D v", "C SELECT 1", "Z I", "T x:25", "D NULL", "C SELECT 1", "Z I"]
        answers = await client.send(query("select set_config('triplicate.request_id', 'r', false)"))
        assert answers == ["T set_config:25", "D r", "C SELECT 1", "Z I"]

    play(body)


def test_asyncpg_prepares_a_statement_again_by_itself_when_its_result_has_changed() -> None:
    async def body(s: Served) -> None:
        connection, other = await s.asyncpg(), await s.asyncpg()
        await connection.execute("create table t(a int)")
        await connection.execute("insert into t values (1)")
        assert tuple(await connection.fetchrow("select * from t where a = $1", 1)) == (1,)
        await other.execute("alter table t add column b int default 2")
        assert tuple(await connection.fetchrow("select * from t where a = $1", 1)) == (1, 2)
        await other.close()
        await connection.close()

    run(body)


def test_a_cancel_after_a_change_has_been_stored_comes_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any error but 08007 would say that nothing was stored."""
    start = LocalSession.start

    async def body(client: RawClient, s: Served) -> None:
        async def cancelled(self: LocalSession, *arguments: Any) -> RowsCursor:
            cursor = await start(self, *arguments)
            for running in s.server.connections._running.values():
                running.conversation.cancel()
            return cursor

        await client.send(query("create table u(a int)"))
        monkeypatch.setattr(LocalSession, "start", cancelled)
        assert await client.send(query("insert into u values (1) returning a")) == ["T a:20", "D 1", "C INSERT 0 1", "Z I"]
        assert (await client.send(query("select a from u")))[-2:] == ["E ERROR 57014", "Z I"]

    play(body)


@pytest.mark.parametrize("results", [[], [1]])
def test_a_change_whose_rows_cannot_be_sent_is_not_stored(results: list[int]) -> None:
    """The error says that the change failed, so it must come before the change is stored."""

    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table u(a bigint)"))
        insert = parse("insert into u values (1) returning 9223372036854775807 + a")
        answers = await client.send(insert, describe(), bind(results=results), execute(), SYNC)
        assert answers[-2:] == ["E ERROR 22003", "Z I"]
        assert (await client.send(query("insert into u values (2) returning 9223372036854775807 + a")))[-2:] == ["E ERROR 22003", "Z I"]
        assert (await client.send(query("select count(*) from u")))[1] == "D 0"

    play(body)


def test_a_wrong_number_of_result_formats_is_refused_before_the_change() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table u(a bigint)"))
        answers = await client.send(parse("insert into u values (1) returning a"), bind(results=[0, 0]), execute(), SYNC)
        assert answers == ["1", "E ERROR 08P01", "Z I"]
        assert (await client.send(query("select count(*) from u")))[1] == "D 0"

    play(body)


def test_a_defect_fails_its_statement_and_the_connection_goes_on(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    start = LocalSession.start

    async def defective(self: LocalSession, prepared: Prepared, *arguments: Any) -> RowsCursor:
        if "defect" in prepared.sql:
            raise KeyError("an error that nobody expects")
        return await start(self, prepared, *arguments)

    monkeypatch.setattr(LocalSession, "start", defective)

    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table t(a text)"))
        assert await client.send(query("select 'defect'")) == ["E ERROR XX000", "Z I"]
        assert await client.send(parse("select 'defect'"), bind(), execute(), SYNC) == ["1", "2", "E ERROR XX000", "Z I"]
        assert await client.send(query("insert into t values ('kept'); select 'defect'")) == ["C INSERT 0 1", "E ERROR XX000", "Z I"]
        assert (await client.send(query("select count(*) from t")))[1] == "D 0"
        assert (await client.send(query("begin")))[-1] == "Z T"
        assert await client.send(query("select 'defect'")) == ["E ERROR XX000", "Z E"]
        assert (await client.send(query("rollback")))[-1] == "Z I"

    play(body)
    assert "KeyError: 'an error that nobody expects'" in caplog.text


def test_no_row_decides_the_type_of_a_column() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table t(a); insert into t values (1), ('x'), (x'ff'), (2.5)"))
        shown = ["T a:25", "D 1", "D x", "D 2.5", "C SELECT 3"]
        assert await client.send(query("select a from t where typeof(a) <> 'blob' order by rowid")) == [*shown, "Z I"]
        prepared = [
            parse("select a from t where typeof(a) <> 'blob' order by rowid"),
            bind(results=[1]),
            describe(kind="P"),
            execute(),
            SYNC,
        ]
        assert await client.send(*prepared) == ["1", "2", *shown, "Z I"]

    play(body)


# Portals that a savepoint or a failure outlives.


def test_rollback_to_a_savepoint_closes_the_portals_that_began_within_it() -> None:
    select = "select a from t order by a"

    async def body(client: RawClient, _: Served) -> None:
        async def opened(name: str) -> None:
            assert await client.send(parse(select), bind(portal=name), execute(name, 1), SYNC) == ["1", "2", "D 1", "s", "Z T"]

        async def state_of(name: str) -> str:
            return (await client.send(execute(name, 1), SYNC))[0]

        for statement in ("create table t(a int)", "insert into t values (1), (2), (3)", "begin"):
            await client.send(query(statement))
        await opened("older")
        await client.send(query("savepoint s"), query("insert into t values (100)"), parse(select), bind(portal="bound"))
        await client.send(query("savepoint s"))
        await opened("inner")
        await client.send(query("savepoint released"))
        await opened("of released")
        await client.send(query("release released"))
        await client.send(query("savepoint later"), query("rollback to later"))
        assert await state_of("of released") == "D 2"
        await client.send(query("rollback to s"))
        assert [await state_of(name) for name in ("inner",)] == ["E ERROR 34000"]
        await client.send(query("rollback to s"))
        assert await state_of("of released") == "E ERROR 34000"
        await client.send(query("rollback to s"))
        await opened("inner")
        await client.send(query("release s"), query("rollback to s"))
        assert await state_of("inner") == "E ERROR 34000"
        await client.send(query("rollback to s"))
        assert await state_of("bound") == "E ERROR 34000"
        await client.send(query("rollback to s"))
        assert await state_of("older") == "D 2"

    play(body)


def test_a_portal_that_is_started_within_a_savepoint_does_not_give_its_rows_afterwards() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table t(a int)"))
        await client.send(query("begin"))
        await client.send(parse("select a from t order by a"), bind(portal="p"), SYNC)
        await client.send(query("savepoint s"))
        await client.send(query("insert into t values (100), (101)"))
        assert (await client.send(execute("p", 1), SYNC))[0] == "D 100"
        await client.send(query("rollback to s"))
        assert await client.send(execute("p", 1), SYNC) == ["E ERROR 34000", "Z E"]

    play(body)


def test_a_portal_does_not_go_on_in_a_failed_transaction() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("begin"))
        assert await client.send(parse(SERIES), bind(portal="p"), execute("p", 1), SYNC) == ["1", "2", "D 1", "s", "Z T"]
        await client.send(query("savepoint s"))
        assert await client.send(query("select * from missing")) == ["E ERROR 42P01", "Z E"]
        for most in (1, 2):
            assert await client.send(execute("p", most), SYNC) == ["E ERROR 25P02", "Z E"]
        await client.send(query("rollback to s"))
        assert await client.send(execute("p", 2), SYNC) == ["D 2", "D 3", "s", "Z T"]

    play(body)
