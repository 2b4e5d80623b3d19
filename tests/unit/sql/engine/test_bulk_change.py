"""A change that runs for many rows: one result or one for each run, repeats of a request id, and rows that are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.unit.sql.cluster import Cluster, play, run
from triplicate.errors import SqlError
from triplicate.sql import SqlSession
from triplicate.sql.core.interface import TransactionStatus, Value

INSERT = "insert into t(id, a) values(?1, ?2)"


async def begun(cluster: Cluster) -> SqlSession:
    session = await (await cluster.leader()).session()
    await run(session, "create table if not exists t(id integer primary key, a text not null)")
    await run(session, "begin")
    return session


async def changed(session: SqlSession, *slices: Sequence[Sequence[Value]], is_one_statement: bool = True) -> tuple[int, list[int]]:
    """Run the INSERT for each slice: (rows of all, counts of the last slice)."""
    prepared = await session.prepare(INSERT)
    await session.claim_writer("COPY FROM")
    change = await session.bulk_change(prepared, is_one_statement=is_one_statement)
    for rows in slices:
        await change.run(rows)
    return change.finish(), change.counts


def test_the_rows_of_all_slices_are_stored_with_the_commit(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await begun(cluster)
        assert await changed(session, [(1, "x"), (2, "y")], [(3, "z")]) == (3, [1])
        await run(session, "commit")
        assert await run(session, "select id, a from t order by id") == [(1, "x"), (2, "y"), (3, "z")]
        await run(session, "begin")
        await changed(session, [(4, "x")])
        await run(session, "rollback")
        assert await run(session, "select count(*) from t") == [(3,)]

    play(tmp_path, scene)


def test_a_refused_row_undoes_its_call_and_fails_the_transaction(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await begun(cluster)
        for row, sqlstate in (((1, "y"), "23505"), ((5, None), "23502"), (("x", "y"), "42804")):
            await run(session, "savepoint s")
            change = await session.bulk_change(await session.prepare(INSERT), is_one_statement=True)
            with pytest.raises(SqlError) as refused:
                await change.run([(1, "x"), (2, "x"), row, (6, "x")])
            assert refused.value.sqlstate in (sqlstate, "22P02")
            assert list(change.counts) == [1, 1]
            assert session.status is TransactionStatus.FAILED
            with pytest.raises(SqlError, match="aborted"):
                await change.run([(7, "x")])
            await run(session, "rollback to s")
            assert await run(session, "select count(*) from t") == [(0,)]
        await run(session, "commit")

    play(tmp_path, scene)


def test_an_error_of_the_rows_themselves_ends_the_call(tmp_path: Path) -> None:
    def rows() -> Iterator[Sequence[Value]]:
        yield 1, "x"
        raise SqlError("22P04", "malformed")

    async def scene(cluster: Cluster) -> None:
        session = await begun(cluster)
        change = await session.bulk_change(await session.prepare(INSERT), is_one_statement=True)
        with pytest.raises(SqlError, match="malformed"):
            await change.run(rows())
        await run(session, "rollback")
        assert await run(session, "select count(*) from t") == [(0,)]

    play(tmp_path, scene)


@pytest.mark.parametrize("is_one_statement", [True, False])
def test_a_repeated_transaction_answers_and_stores_nothing(tmp_path: Path, is_one_statement: bool) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await begun(cluster)
        for _ in range(2):
            await session.set_request_id("r")
            found = await changed(session, [(1, "x"), (2, "y")], is_one_statement=is_one_statement)
            assert found[0] == 2 or not is_one_statement
            assert is_one_statement or found[1] == [1, 1]
            await run(session, "commit")
            await run(session, "begin")
        await run(session, "rollback")
        assert await run(session, "select count(*) from t") == [(2,)]

    play(tmp_path, scene)
