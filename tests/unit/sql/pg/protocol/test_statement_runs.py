"""A run of Bind and Execute is answered as its statements are one by one, also where one of them fails."""

from __future__ import annotations

import pytest

from tests.unit.sql.pg.raw_client import SYNC, RawClient, bind, describe, execute, parse, query
from tests.unit.sql.pg.server_rig import Served, play
from triplicate.sql.pg.protocol.statement_runs import RUN_STATEMENTS, SHORTEST_RUN

TABLE = query("create table t(a int primary key, b text)")
INSERT = parse("insert into t values ($1, $2)", "i")
COUNT = query("select count(*) from t")
MANY = RUN_STATEMENTS * 2 + 5


def pairs(count: int, *, first: int = 0) -> list[bytes]:
    """Bind and Execute for each number."""
    return [message for number in range(first, first + count) for message in (bind(b"%d" % number, b"x", statement="i"), execute())]


def bulk_runs(served: Served) -> int:
    return sum(session.bulk_runs for session in served.database.sessions)


@pytest.mark.parametrize("count", [2, SHORTEST_RUN, MANY])
@pytest.mark.parametrize("is_explicit", [False, True])
def test_each_statement_has_its_answers(count: int, is_explicit: bool) -> None:
    async def body(client: RawClient, s: Served) -> None:
        await client.send(TABLE)
        if is_explicit:
            await client.send(query("begin"))
        answers = await client.send(INSERT, *pairs(count), SYNC)
        assert answers == ["1", *["2", "C INSERT 0 1"] * count, "Z T" if is_explicit else "Z I"]
        assert (bulk_runs(s) > 0) == (count >= SHORTEST_RUN)
        if is_explicit:
            await client.send(query("commit"))
        assert (await client.send(COUNT))[1] == f"D {count}"

    play(body)


@pytest.mark.parametrize("count", [2, SHORTEST_RUN, 20])
def test_a_failed_statement_ends_the_run(count: int) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(TABLE)
        answers = await client.send(INSERT, *pairs(count), *pairs(5, first=1), SYNC)
        assert answers == ["1", *["2", "C INSERT 0 1"] * count, "2", "E ERROR 23505", "Z I"]
        assert (await client.send(COUNT))[1] == "D 0"
        await client.send(query("begin"))
        answers = await client.send(*pairs(count), *pairs(5, first=1), SYNC)
        assert answers == [*["2", "C INSERT 0 1"] * count, "2", "E ERROR 23505", "Z E"]
        await client.send(query("rollback"))

    play(body)


def test_an_error_of_a_bind_comes_after_the_statements_before_it() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(TABLE)
        for wrong, sqlstate in ((bind(b"x", b"x", statement="i"), "22P02"), (bind(b"1", statement="i"), "08P01")):
            answers = await client.send(
                parse("insert into t values ($1, $2)", "i"), *pairs(10), wrong, execute(), *pairs(3, first=50), SYNC
            )
            assert answers == ["1", *["2", "C INSERT 0 1"] * 10, f"E ERROR {sqlstate}", "Z I"]
            assert (await client.send(COUNT))[1] == "D 0"
            await client.send(query("deallocate i"))

    play(body)


@pytest.mark.parametrize("count", [3, 20])
def test_messages_of_other_kinds_follow_a_run(count: int) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(TABLE)
        run = pairs(count)
        answers = await client.send(
            INSERT, parse("select count(*) from t", "c"), *run, bind(statement="c"), describe(kind="P"), execute(), SYNC
        )
        assert answers[2:] == [*["2", "C INSERT 0 1"] * count, "2", "T count:20", f"D {count}", "C SELECT 1", "Z I"]
        answers = await client.send(*pairs(count, first=100), bind(b"200", b"x", statement="i"), describe("i"), execute(), SYNC)
        assert answers == [*["2", "C INSERT 0 1"] * count, "2", "t", "n", "C INSERT 0 1", "Z I"]
        named = bind(b"300", b"x", statement="i", portal="p")
        answers = await client.send(*pairs(count, first=210), named, execute("p"), execute(), SYNC)
        assert answers == [*["2", "C INSERT 0 1"] * count, "2", "C INSERT 0 1", "E ERROR 55000", "Z I"]
        answers = await client.send(*pairs(count, first=310), bind(b"400", b"x", statement="i"), SYNC)
        assert answers == [*["2", "C INSERT 0 1"] * count, "2", "Z I"]

    play(body)


def test_described_portals_are_answered_without_data() -> None:
    async def body(client: RawClient, s: Served) -> None:
        await client.send(TABLE)
        messages = [m for n in range(20) for m in (bind(b"%d" % n, b"x", statement="i"), describe(kind="P"), execute())]
        assert await client.send(INSERT, *messages, SYNC) == ["1", *["2", "n", "C INSERT 0 1"] * 20, "Z I"]
        assert bulk_runs(s) == 1

    play(body)


def test_each_statement_has_its_own_count() -> None:
    async def body(client: RawClient, s: Served) -> None:
        await client.send(TABLE)
        ignoring = parse("insert into t values ($1, 'x'), ($1 + 1000, 'x') on conflict do nothing", "i")
        messages = [m for n in (1, 2, 1, 3, 1001, 4, 5, 6, 7, 8) for m in (bind(b"%d" % n, statement="i"), execute())]
        answers = await client.send(ignoring, *messages, SYNC)
        assert [answer[2:] for answer in answers if answer[0] == "C"] == [f"INSERT 0 {n}" for n in (2, 2, 0, 2, 1, 2, 2, 2, 2, 2)]
        updating = parse("update t set b = $1 where a < 1000 and a > $2", "u")
        messages = [m for n in range(10) for m in (bind(b"y", b"%d" % n, statement="u"), execute())]
        answers = await client.send(updating, *messages, SYNC)
        assert [answer[2:] for answer in answers if answer[0] == "C"] == [f"UPDATE {n}" for n in (8, 7, 6, 5, 4, 3, 2, 1, 0, 0)]
        assert bulk_runs(s) == 2

    play(body)


@pytest.mark.parametrize("sql", ["insert into t values ($1, $2) returning a", "insert into t values ($1, coalesce($2, now()::text))"])
def test_other_statements_are_executed_one_by_one(sql: str) -> None:
    async def body(client: RawClient, s: Served) -> None:
        await client.send(TABLE)
        answers = await client.send(parse(sql, "i"), *pairs(10), SYNC)
        assert answers.count("C INSERT 0 1") == 10
        assert bulk_runs(s) == 0

    play(body)
