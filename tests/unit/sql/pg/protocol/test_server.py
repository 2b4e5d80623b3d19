"""The PostgreSQL server before an unreplicated engine, through real clients. Source: PostgreSQL 15, "Message Flow"."""

from __future__ import annotations

import asyncio
import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.unit.sql.pg.local_engine import LocalSession
from tests.unit.sql.pg.raw_client import RawClient, query
from tests.unit.sql.pg.server_rig import Served, run
from tests.waiting import eventually
from triplicate.errors import SqlError
from triplicate.replica.failure_detector import PROBE
from triplicate.security import UNANSWERED_CONNECTIONS
from triplicate.sql.pg import ServerLimits

TABLE = "create table t(a integer primary key, b text, c real, d timestamp, e boolean, f numeric, g blob, h date)"
ROW = (1, "x", 1.5, dt.datetime.fromisoformat("2013-01-01 05:06:07"), True, Decimal("1.25"), b"\0\1", dt.date(2013, 1, 2))


@pytest.mark.parametrize("binary", [False, True])
def test_every_type_round_trips_with_psycopg(binary: bool) -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg() as connection:
            await connection.execute(TABLE)
            await connection.execute("insert into t values(%s,%s,%s,%s,%s,%s,%s,%s)", ROW)
            cursor = connection.cursor(binary=binary)
            await cursor.execute("select * from t where a = %s", (1,))
            assert await cursor.fetchall() == [ROW]

    run(body)


def test_every_type_round_trips_with_asyncpg() -> None:
    async def body(s: Served) -> None:
        connection = await s.asyncpg()
        await connection.execute(TABLE)
        await connection.execute("insert into t values($1,$2,$3,$4,$5,$6,$7,$8)", *ROW)
        assert tuple(await connection.fetchrow("select * from t where a = $1", 1)) == ROW
        await connection.close()

    run(body)


def test_count_is_an_integer_in_every_client() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg() as connection:
            await connection.execute(TABLE)
            cursor = await connection.execute("select count(*) from t")
            assert cursor.description is not None
            assert (cursor.description[0].name, cursor.description[0].type_code) == ("count", 20)
            assert await cursor.fetchone() == (0,)
            await connection.commit()
        connection = await s.asyncpg()
        assert await connection.fetchval("select count(*) from t") == 0
        await connection.close()

    run(body)


def test_an_expression_takes_the_type_of_its_first_row() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg() as connection:
            cursor = await connection.execute("select case when 1 then 7 end, case when 1 then 1.5 end")
            assert await cursor.fetchone() == (7, 1.5)

    run(body)


async def _insert_in_pipeline(connection: psycopg.AsyncConnection[Any], keys: list[int]) -> None:
    async with connection.pipeline():
        for key in keys:
            await connection.execute("insert into t(a) values(%s)", (key,))


def test_an_error_in_a_pipeline_skips_to_sync_and_undoes_the_implicit_transaction() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg(autocommit=True) as connection:
            await connection.execute(TABLE)
            with pytest.raises(psycopg.errors.UniqueViolation):
                await _insert_in_pipeline(connection, [1, 1, 2])
            assert await (await connection.execute("select count(*) from t")).fetchone() == (0,)

    run(body)


def test_executemany_inserts_all_rows() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg() as connection:
            await connection.execute(TABLE)
            cursor = connection.cursor()
            await cursor.executemany("insert into t(a, b) values(%s, %s)", [(i, str(i)) for i in range(500)])
            assert cursor.rowcount == 500
            await connection.commit()
        other = await s.asyncpg()
        await other.executemany("insert into t(a, b) values($1, $2)", [(i, str(i)) for i in range(500, 600)])
        assert await other.fetchval("select count(*) from t") == 600
        await other.close()

    run(body)


def test_a_failed_transaction_refuses_everything_but_rollback() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg() as connection:
            await connection.execute(TABLE)
            await connection.commit()
            with pytest.raises(psycopg.errors.UndefinedTable):
                await connection.execute("select * from nowhere")
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                await connection.execute("select 1")
            await connection.rollback()
            assert await (await connection.execute("select 1")).fetchone() == (1,)

    run(body)


def test_commit_of_a_failed_transaction_says_rollback() -> None:
    async def body(s: Served) -> None:
        connection = await s.asyncpg()
        await connection.execute("begin")
        with pytest.raises(asyncpg.UndefinedTableError):
            await connection.execute("select * from nowhere")
        assert await connection.execute("commit") == "ROLLBACK"
        await connection.close()

    run(body)


def test_several_statements_in_one_simple_query_are_one_transaction() -> None:
    async def body(s: Served) -> None:
        connection = await s.asyncpg()
        await connection.execute(TABLE)
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute("insert into t(a) values(1); insert into t(a) values(1)")
        assert await connection.fetchval("select count(*) from t") == 0
        await connection.execute("insert into t(a) values(1); begin; insert into t(a) values(2)")
        await connection.execute("rollback")
        assert await connection.fetchval("select count(*) from t") == 0
        await connection.close()

    run(body)


def test_a_portal_is_read_in_pieces() -> None:
    async def body(s: Served) -> None:
        connection = await s.asyncpg()
        await connection.execute(TABLE)
        await connection.executemany("insert into t(a) values($1)", [(i,) for i in range(1000)])
        async with connection.transaction():
            seen = [record["a"] async for record in connection.cursor("select a from t order by a", prefetch=7)]
        assert seen == list(range(1000))
        await connection.close()

    run(body)


def test_a_client_finds_the_writable_node_by_its_parameters() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg(target_session_attrs="read-write") as connection:
            assert connection.info.parameter_status("in_hot_standby") == "off"
            assert await (await connection.execute("show transaction_read_only")).fetchone() == ("off",)
        s.database.is_leader = False
        with pytest.raises(psycopg.OperationalError, match=r"read-only|standby"):
            await s.psycopg(target_session_attrs="read-write")

    run(body)


def test_the_session_is_ended_with_57p01_when_leadership_is_lost() -> None:
    async def body(s: Served) -> None:
        reader, writer = await asyncio.open_connection(*s.server.address)
        body = struct.pack(">i", 3 << 16) + b"user\0me\0database\0shop\0\0"
        writer.write(struct.pack(">i", len(body) + 4) + body)
        greeting = await reader.readuntil(b"Z\0\0\0\5I")
        assert greeting[:1] == b"R"
        s.database.sessions[-1].ended.set_result(SqlError("57P01", "this node is no longer the leader"))
        goodbye = await reader.read()
        assert b"FATAL" in goodbye
        assert b"57P01" in goodbye
        writer.close()
        await writer.wait_closed()

    run(body)


def test_a_stop_ends_idle_clients_with_57p01_and_a_running_statement_as_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """57P01 says that nothing was stored. A COMMIT that runs may have been sent to the log."""
    is_running = asyncio.Event()

    async def started(self: LocalSession, *_: object) -> None:
        is_running.set()
        await asyncio.Event().wait()

    async def body(s: Served) -> None:
        idle, busy = [await RawClient.connect(*s.server.address) for _ in range(2)]
        monkeypatch.setattr(LocalSession, "start", started)
        busy.send_nowait(query("create table u(a)"))
        await is_running.wait()
        await s.server.stop()
        assert await idle.until_closed() == ["E FATAL 57P01"]
        assert await busy.until_closed() == ["E FATAL 08007"]
        idle.close()
        busy.close()

    run(body)


def test_an_unknown_database_is_named() -> None:
    async def body(s: Served) -> None:
        with pytest.raises(psycopg.OperationalError, match='database "nowhere" does not exist'):
            await psycopg.AsyncConnection.connect(s.dsn.replace("shop", "nowhere"))

    run(body)


def test_a_node_that_starts_denies_no_database() -> None:
    async def body(s: Served) -> None:
        s.databases.starting = True
        with pytest.raises(psycopg.OperationalError, match='has not found database "nowhere" yet'):
            await psycopg.AsyncConnection.connect(s.dsn.replace("shop", "nowhere"))
        async with await s.psycopg() as connection:
            assert await (await connection.execute("select 1")).fetchone() == (1,)

    run(body)


def test_a_node_without_some_databases_sends_clients_to_the_next_node() -> None:
    async def body(s: Served) -> None:
        s.databases.is_partial = True
        host, port = s.server.address
        # libpq goes on to the next host after 57P03 and after no other error.
        with pytest.raises(asyncpg.CannotConnectNowError, match='this node has no copy of database "nowhere"'):
            await asyncpg.connect(host=host, port=port, database="nowhere", user="me")
        async with await s.psycopg() as connection:
            assert await (await connection.execute("select 1")).fetchone() == (1,)

    run(body)


def test_copy_of_a_file_is_refused_with_a_hint_and_the_session_goes_on() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg(autocommit=True) as connection:
            with pytest.raises(psycopg.errors.FeatureNotSupported) as failure:
                await connection.execute("copy t from '/tmp/t'")
            assert "\\copy" in str(failure.value.diag.message_hint)
            await connection.execute("select 1")

    run(body)


def test_asyncpg_resets_a_connection() -> None:
    async def body(s: Served) -> None:
        connection = await s.asyncpg()
        await connection.execute("set search_path to elsewhere, public")
        await connection.reset()
        assert await connection.fetchval("show search_path") == '"$user", public'
        await connection.close()

    run(body)


def test_request_id_reaches_the_engine() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg(autocommit=True) as connection:
            await connection.execute("set triplicate.request_id = 'order-7'")
            assert s.database.sessions[-1].request_ids == ["order-7"]

    run(body)


def test_too_many_clients_are_refused() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg():
            with pytest.raises(psycopg.OperationalError, match="too many clients"):
                await s.psycopg()

    run(body, ServerLimits(connections=1))


def test_connections_that_only_ask_whether_the_server_answers_are_not_clients() -> None:
    """Each other node keeps one, asks on it again and again, and must not use up the limit of connections."""

    async def body(s: Served) -> None:
        lines = [await asyncio.open_connection(*s.server.address) for _ in range(3)]
        for _ in range(3):
            for reader, writer in lines:
                writer.write(PROBE)
                assert await reader.read(1) == b"N"
        async with await s.psycopg():
            with pytest.raises(psycopg.OperationalError, match="too many clients"):
                await s.psycopg()
        for _, writer in lines:
            writer.close()

    run(body, ServerLimits(connections=1))


def test_one_database_cannot_take_the_connections_of_another() -> None:
    async def body(s: Served) -> None:
        for _ in range(3):
            async with await s.psycopg():
                with pytest.raises(psycopg.OperationalError, match='too many connections for database "shop": 1 are open'):
                    await s.psycopg()
                async with await s.psycopg(dbname="other"):
                    pass

    run(body, ServerLimits(database_connections=1))


def test_connections_that_say_nothing_are_bounded() -> None:
    async def body(s: Served) -> None:
        limit = 1 + UNANSWERED_CONNECTIONS
        silent = [await asyncio.open_connection(*s.server.address) for _ in range(limit + 5)]
        waiting = {asyncio.ensure_future(reader.read(1)) for reader, _ in silent}
        closed: set[asyncio.Future[bytes]] = set()
        while len(closed) < 5:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            closed |= done
        assert [task.result() for task in closed] == [b""] * 5
        await eventually(lambda: s.server.connections.count == limit)
        for task in waiting:
            task.cancel()
        for _, writer in silent:
            writer.close()

    run(body, ServerLimits(connections=1))


@pytest.mark.parametrize(
    "first",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">ii", 8, 2 << 16),
        struct.pack(">ii", 2**30, 3 << 16),
        struct.pack(">ii", 12, 3 << 16) + b"user",
    ],
)
def test_garbage_at_the_start_is_answered_or_closed(first: bytes) -> None:
    async def body(s: Served) -> None:
        reader, writer = await asyncio.open_connection(*s.server.address)
        writer.write(first)
        writer.write_eof()
        answer = await reader.read()
        assert answer == b"" or answer[:1] == b"E"
        writer.close()
        await writer.wait_closed()
        async with await s.psycopg():
            pass

    run(body)


def test_a_message_over_the_limit_ends_the_connection_with_an_error() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg(autocommit=True) as connection:
            with pytest.raises(psycopg.OperationalError):
                await connection.execute("select %s", ("x" * 100_000,))

    run(body, ServerLimits(message_bytes=10_000))


def test_now_is_one_time_for_all_of_a_transaction() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg(autocommit=True) as connection:
            await connection.execute("create table times(a timestamptz, b timestamp, c date, d text)")
            async with connection.transaction():
                first = await (await connection.execute("select now(), current_timestamp, transaction_timestamp()")).fetchone()
                await asyncio.sleep(0.002)
                second = await (await connection.execute("select now(), now()::timestamp, clock_timestamp()")).fetchone()
                await connection.execute("insert into times values (now(), now(), now(), now()::date::text)")
            assert first is not None
            assert second is not None
            assert first[0] == first[1] == first[2] == second[0]
            assert second[0].tzinfo is not None
            assert second[1] == second[0].replace(tzinfo=None)
            assert second[2] > second[0]
            row = await (await connection.execute("select * from times")).fetchone()
            assert row == (second[0], second[1], second[0].date(), second[0].date().isoformat())
            await asyncio.sleep(0.002)
            later = await (await connection.execute("select now()")).fetchone()
            assert later is not None
            assert later[0] > second[0]

    run(body)


@pytest.mark.parametrize("binary", [False, True])
def test_array_parameters_of_psycopg_and_asyncpg(binary: bool) -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg(autocommit=True) as connection:
            await connection.execute("create table t(a int, b text, c blob, d date)")
            await connection.execute("insert into t values (1, 'x', x'01', '2024-01-05'), (2, 'y', x'02', null), (null, null, null, null)")
            cursor = connection.cursor(binary=binary)
            form = "b" if binary else "t"
            for column, values, expected in (
                ("a", [1, 5], [1]),
                ("a", [], []),
                ("a", [None, 2], [2]),
                ("b", ["x", "y", 'q"{}\\,'], [1, 2]),
                ("c", [b"\x02"], [2]),
                ("d", [dt.date.fromisoformat("2024-01-05")], [1]),
            ):
                await cursor.execute(f"select a from t where {column} = any(%{form}) order by a".encode(), (values,))
                assert [row[0] for row in await cursor.fetchall()] == expected
            await cursor.execute(f"select a from t where a <> all(%{form})".encode(), ([1],))
            assert await cursor.fetchall() == [(2,)]
        client = await s.asyncpg()
        assert [row[0] for row in await client.fetch("select a from t where a = any($1) order by a", [2, 1])] == [1, 2]
        assert [row[0] for row in await client.fetch("select a from t where b = any($1::text[])", ["y"])] == [2]
        await client.close()

    run(body)


def test_predicates_are_booleans_in_every_client() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg(autocommit=True) as connection:
            for binary in (False, True):
                cursor = connection.cursor(binary=binary)
                await cursor.execute("select exists(select 1), true, 1 = 1, 'a' like 'b', 1 in (1, 2), null is null, not false")
                assert await cursor.fetchone() == (True, True, True, False, True, True, True)
        client = await s.asyncpg()
        assert await client.fetchval("select exists(select 1)") is True
        await client.close()

    run(body)


def test_an_error_anywhere_fails_the_transaction() -> None:
    """In a parameter, in a constant, in what is not available: PostgreSQL makes no difference."""

    async def body(s: Served) -> None:
        async with await s.psycopg(autocommit=True) as connection:
            await connection.execute("create table t(a int)")
            for statement, parameters in (
                ("select 'x'::int", ()),
                ("select %s::int", ("x",)),
                ("copy t from '/tmp/t'", ()),
                ("select 1 + 'x'", ()),
            ):
                await connection.execute("begin")
                await connection.execute("insert into t values (1)")
                with pytest.raises(psycopg.Error):
                    await connection.execute(statement.encode(), parameters)
                with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                    await connection.execute("select 1")
                await connection.execute("commit")
            cursor = await connection.execute("select count(*) from t")
            assert await cursor.fetchone() == (0,)

    run(body)


def test_integers_that_overflow_are_an_error_and_no_float() -> None:
    async def body(s: Served) -> None:
        async with await s.psycopg(autocommit=True) as connection:
            for expression in ("9223372036854775807 + 1", "-9223372036854775807 - 2", "9223372036854775807 * 2"):
                for binary in (False, True):
                    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
                        await connection.cursor(binary=binary).execute(f"select {expression}".encode())

    run(body)


def test_a_row_lock_claims_the_writer_in_a_transaction_only() -> None:
    async def body(s: Served) -> None:
        claimed: list[str] = []
        async with await s.psycopg(autocommit=True) as connection:
            session = s.database.sessions[-1]

            async def claim(tag: str) -> None:
                claimed.append(tag)

            session.claim_writer = claim  # type: ignore[method-assign]
            await connection.execute("create table t(a int)")
            await connection.execute("select * from t for update")
            assert claimed == []
            async with connection.transaction():
                await connection.execute("select * from t for update")
            assert claimed == ["SELECT FOR UPDATE"]
            await connection.execute("begin read only")
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                await connection.execute("select * from t for share")
            await connection.execute("rollback")

    run(body)
