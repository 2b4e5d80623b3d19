"""COPY in the protocol: orders of messages, errors, and who undoes what, as with PostgreSQL 15."""

from __future__ import annotations

import pytest

from tests.unit.sql.pg.raw_client import COPY_DONE, FLUSH, SYNC, RawClient, bind, copy_data, copy_fail, describe, execute, parse, query
from tests.unit.sql.pg.server_rig import Served, play

TABLE = query("create table t(a int primary key, b text not null, c int default 7)")
COUNT = query("select count(*) from t")


def test_rows_are_stored_when_the_data_are_complete() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(TABLE)
        answers = await client.send(
            query("copy t (a, b) from stdin"), copy_data(b"1\tx\n2"), FLUSH, copy_data(b"\ty\n3\t"), copy_data(b"z"), COPY_DONE
        )
        assert answers == ["G", "C COPY 3", "Z I"]
        assert (await client.send(query("copy t to stdout")))[1:] == ["d 1\tx\t7\n", "d 2\ty\t7\n", "d 3\tz\t7\n", "c", "C COPY 3", "Z I"]
        assert await client.send(query("copy t from stdin"), COPY_DONE) == ["G", "C COPY 0", "Z I"]

    play(body)


@pytest.mark.parametrize(
    ("messages", "sqlstate"),
    [
        ([copy_data(b"1\tx\n"), copy_fail("no more")], "57014"),
        ([copy_data(b"1\tx\n2\n"), COPY_DONE], "22P04"),
        ([copy_data(b"1\tx\nx\ty\n"), COPY_DONE], "22P02"),
        ([copy_data(b"1\tx\n1\ty\n"), COPY_DONE], "23505"),
        ([copy_data(b"".join(b"%d\tx\n" % number for number in range(20_000)) + b"5\ty\n"), COPY_DONE], "23505"),
        ([copy_data(b"1\tx\n"), copy_data(b"2"), COPY_DONE], "22P04"),
    ],
)
def test_an_error_undoes_all_rows_and_the_rest_of_the_data_is_ignored(messages: list[bytes], sqlstate: str) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(TABLE)
        assert await client.send(query("copy t (a, b) from stdin"), *messages) == ["G", f"E ERROR {sqlstate}", "Z I"]
        assert await client.send(copy_data(b"5\tx\n"), COPY_DONE, COUNT) == ["T count:20", "D 0", "C SELECT 1", "Z I"]
        await client.send(query("begin"))
        assert await client.send(query("copy t (a, b) from stdin"), *messages) == ["G", f"E ERROR {sqlstate}", "Z E"]
        assert await client.send(query("copy t (a, b) from stdin")) == ["E ERROR 25P02", "Z E"]
        await client.send(query("rollback"))
        assert (await client.send(COUNT))[1] == "D 0"

    play(body)


def test_a_copy_is_a_part_of_its_transaction() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(TABLE)
        await client.send(query("begin"))
        assert await client.send(query("copy t (a, b) from stdin"), copy_data(b"1\tx\n"), COPY_DONE) == ["G", "C COPY 1", "Z T"]
        await client.send(query("rollback"))
        assert (await client.send(COUNT))[1] == "D 0"
        answers = await client.send(
            query("insert into t values (9, 'q'); copy t (a, b) from stdin; select nonsense"), copy_data(b"1\tx\n"), COPY_DONE
        )
        assert answers[:3] == ["C INSERT 0 1", "G", "C COPY 1"]
        assert answers[-1] == "Z I"
        assert (await client.send(COUNT))[1] == "D 0"

    play(body)


def test_rows_are_changed_and_deleted_by_their_primary_key() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table t(a int, b text, c int default 7, d text not null default 'd', primary key (b, a))"))
        await client.send(query("insert into t values (1, 'x', 1, 'one'), (2, 'x', 2, 'two'), (3, 'y', 3, 'three')"))
        upsert = query("copy t (c, a, b) from stdin with (format csv, action upsert)")
        assert await client.send(upsert, copy_data(b"10,1,x\n,2,x\n40,4,z\n41,4,z\n"), COPY_DONE) == ["G", "C COPY 4", "Z I"]
        rows = ["d 1,x,10,one\n", "d 2,x,,two\n", "d 3,y,3,three\n", "d 4,z,41,d\n"]
        everything = query("copy (select * from t order by a) to stdout (format csv)")
        assert (await client.send(everything))[1:5] == rows
        assert await client.send(query("copy t (b, a) from stdin (action upsert)"), copy_data(b"y\t3\nz\t5\n"), COPY_DONE) == [
            "G", "C COPY 1", "Z I",
        ]  # fmt: skip
        assert await client.send(query("copy t from stdin (action delete)"), copy_data(b"x\t1\nx\t9\nz\t5\n"), COPY_DONE) == [
            "G", "C COPY 2", "Z I",
        ]  # fmt: skip
        assert (await client.send(everything))[1:-2] == [*rows[1:], "c"]
        failing = copy_data(b"x\t2\nnone\tz\n")
        assert await client.send(query("copy t (b, a) from stdin (action delete)"), failing, COPY_DONE) == ["G", "E ERROR 22P02", "Z I"]
        assert (await client.send(everything))[1:-2] == [*rows[1:], "c"]

    play(body)


@pytest.mark.parametrize(
    "statement",
    [
        "copy k (b) from stdin (action upsert)",
        "copy k (a, b) from stdin (action delete)",
        "copy n from stdin (action delete)",
        "copy n from stdin (action upsert)",
    ],
)
def test_rows_are_changed_by_nothing_but_the_whole_primary_key(statement: str) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table k(a int primary key, b int unique)"))
        await client.send(query("create table n(a int, b int unique not null)"))
        assert await client.send(query(statement)) == ["E ERROR 42P10", "Z I"]

    play(body)


def test_in_the_extended_protocol_sync_during_the_data_is_ignored() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(TABLE)
        client.send_nowait(parse("copy t (a, b) from stdin"), bind(), describe(kind="P"), execute(), SYNC)
        answers = await client.send(copy_data(b"1\tx\n"), COPY_DONE, SYNC)
        assert answers == ["1", "2", "n", "G", "C COPY 1", "Z I"]
        client.send_nowait(parse("copy t (a, b) from stdin"), bind(), execute(), SYNC)
        assert await client.send(copy_data(b"1\tx\n"), COPY_DONE, SYNC) == ["1", "2", "G", "E ERROR 23505", "Z I"]
        assert await client.send(parse("copy t to stdout"), bind(), execute(), SYNC) == [
            "1",
            "2",
            "H",
            "d 1\tx\t7\n",
            "c",
            "C COPY 1",
            "Z I",
        ]

    play(body)


def test_another_message_during_the_data_ends_the_copy() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(TABLE)
        client.send_nowait(query("copy t (a, b) from stdin"), copy_data(b"1\tx\n"))
        assert await client.send(query("select 1")) == ["G", "E ERROR 08P01", "Z I"]
        assert (await client.send(COUNT))[1] == "D 0"

    play(body)


def test_data_without_a_copy_are_ignored() -> None:
    async def body(client: RawClient, _: Served) -> None:
        assert (await client.send(copy_data(b"x"), COPY_DONE, copy_fail("x"), query("select 1")))[1] == "D 1"

    play(body)


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("copy nowhere from stdin", "42P01"),
        ("copy nowhere to stdout", "42P01"),
        ("copy t (d) from stdin", "42703"),
        ("copy t (a, a) from stdin", "42701"),
        ("copy g (c) from stdin", "42P10"),
        ("copy g (c) to stdout", "42P10"),
        ("copy t (a) from stdin (format csv, force_null (b))", "42P10"),
        ("copy (select $1) to stdout", "42P02"),
        ("copy (delete from t) to stdout", "0A000"),
        ("copy (begin) to stdout", "0A000"),
        ("copy (select 1; select 2) to stdout", "42601"),
    ],
)
def test_what_cannot_be_copied_is_refused_before_any_data(statement: str, sqlstate: str) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(TABLE)
        await client.send(query("create table g(a int, c int generated always as (a + 1) stored)"))
        assert await client.send(query(statement)) == [f"E ERROR {sqlstate}", "Z I"]

    play(body)


def test_generated_columns_are_left_out() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table g(a int, c int generated always as (a + 1) stored)"))
        assert await client.send(query("copy g from stdin"), copy_data(b"1\n"), COPY_DONE) == ["G", "C COPY 1", "Z I"]
        assert await client.send(query("copy g to stdout csv header")) == ["H", "d a\n", "d 1\n", "c", "C COPY 1", "Z I"]
        assert (await client.send(query("copy (select a, c from g) to stdout")))[1] == "d 1\t2\n"

    play(body)


def test_a_read_only_transaction_refuses_data() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(TABLE)
        await client.send(query("begin read only"))
        assert await client.send(query("copy t from stdin")) == ["E ERROR 25006", "Z E"]
        await client.send(query("rollback"))

    play(body)


def test_rows_that_a_change_returns_are_copied() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(TABLE)
        await client.send(query("copy t (a, b) from stdin"), copy_data(b"1\tx\n2\ty\n"), COPY_DONE)
        answers = await client.send(query("copy (delete from t where a = 1 returning a, b) to stdout"))
        assert answers == ["H", "d 1\tx\n", "c", "C COPY 1", "Z I"]
        assert (await client.send(COUNT))[1] == "D 1"

    play(body)


def test_a_client_that_disconnects_stores_nothing() -> None:
    async def body(client: RawClient, s: Served) -> None:
        await client.send(TABLE)
        other = await RawClient.connect(*s.server.address)
        other.send_nowait(query("copy t (a, b) from stdin"), copy_data(b"1\tx\n" + b"".join(b"%d\tx\n" % n for n in range(2, 30000))))
        other.close()
        while s.server.connections.count > 1:
            await client.send(query("select 1"))
        assert (await client.send(COUNT))[1] == "D 0"

    play(body)


def test_statement_timeout_ends_a_copy_that_waits_for_data() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(TABLE)
        await client.send(query("set statement_timeout = '20ms'"))
        assert await client.send(query("copy t (a, b) from stdin"), copy_data(b"1\tx\n")) == ["G", "E ERROR 57014", "Z I"]

    play(body)
