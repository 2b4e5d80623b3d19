"""TRUNCATE deletes the rows of several tables in one transaction, and none that other tables reference."""

from __future__ import annotations

from tests.unit.sql.pg.raw_client import SYNC, RawClient, bind, execute, parse, query
from tests.unit.sql.pg.server_rig import Served, play

COUNTS = query("select (select count(*) from a), (select count(*) from b)")


async def filled(client: RawClient) -> None:
    await client.send(query("create table a(i int primary key)"))
    await client.send(query("create table b(i int references a(i) on delete cascade)"))
    await client.send(query("insert into a values (1), (2)"))
    await client.send(query("insert into b values (1)"))


def test_the_rows_of_all_tables_are_deleted() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await filled(client)
        assert await client.send(query("truncate a, b")) == ["C TRUNCATE TABLE", "Z I"]
        assert (await client.send(COUNTS))[1] == "D 0,0"
        await filled(client)
        assert await client.send(parse("truncate table b"), bind(), execute(), SYNC) == ["1", "2", "C TRUNCATE TABLE", "Z I"]
        assert (await client.send(COUNTS))[1] == "D 2,0"

    play(body)


def test_a_table_that_another_one_references_is_not_truncated_alone() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await filled(client)
        assert await client.send(query("truncate a")) == ["E ERROR 0A000", "Z I"]
        assert await client.send(query("truncate a, nowhere, b")) == ["E ERROR 42P01", "Z I"]
        assert (await client.send(COUNTS))[1] == "D 2,1"

    play(body)


def test_it_is_a_part_of_its_transaction() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await filled(client)
        await client.send(query("begin"))
        assert await client.send(query("truncate a, b")) == ["C TRUNCATE TABLE", "Z T"]
        await client.send(query("rollback"))
        assert (await client.send(COUNTS))[1] == "D 2,1"
        await client.send(query("begin read only"))
        assert await client.send(query("truncate b")) == ["E ERROR 25006", "Z E"]
        await client.send(query("rollback"))

    play(body)
