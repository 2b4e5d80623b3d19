"""Sessions on a leader: single statements, transactions, snapshots, savepoints, request ids."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.sql.cluster import SETTINGS, Cluster, affected, play, run, state_of
from tests.waiting import LIMIT_S
from triplicate.errors import SqlError
from triplicate.sql import SqlSession
from triplicate.sql.core.interface import SchemaMoved, StatementKind, TransactionStatus


def test_single_statements_commit_and_are_read_back(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(id integer primary key, a text)")
        assert await affected(session, "insert into t(a) values($1), ($2)", ("one", "two")) == 2
        assert await run(session, "insert into t(a) values('three') returning id, a") == [(3, "three")]
        assert await run(session, "select id, a from t order by id") == [(1, "one"), (2, "two"), (3, "three")]
        assert await state_of(run(session, "insert into t(id) values(1)")) == "23505"
        assert session.status is TransactionStatus.IDLE
        assert (await session.prepare("select a from t")).columns[0].declared_type == "TEXT"
        assert await session.table_columns("t") == [("id", "INTEGER"), ("a", "TEXT")]
        assert await session.table_columns("none") is None
        assert await run(session, "explain delete from t") != []
        assert await run(session, "select count(*) from t") == [(3,)]

    play(tmp_path, scene)


def test_a_statement_that_was_prepared_before_is_refused_as_a_new_one_would_be(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        leader = await cluster.leader()
        session = await leader.session()
        await run(session, "create table t(a)")
        insert, select = await session.prepare("insert into t values(1)"), await session.prepare("select a from t")
        session.check_prepared(insert)
        name = next(one for one in ("n1", "n2") if one != cluster.leader_name())
        follower = await (await cluster.serving(name, leader.position)).session()
        follower.check_prepared(select)
        await run(follower, "begin")
        with pytest.raises(SqlError) as refused:
            follower.check_prepared(insert)
        assert (refused.value.sqlstate, follower.status) == ("25006", TransactionStatus.FAILED)
        assert not follower.sees_shared_schema
        session.end(SqlError("57P01", "over"))
        with pytest.raises(SqlError, match="over"):
            session.check_prepared(select)

    play(tmp_path, scene, nodes=2)


def test_a_transaction_sees_the_shared_schema_until_it_reads_a_snapshot_or_alters_the_schema(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        for statement, is_shared in (("select a from t", False), ("insert into t values(1)", True), ("create table u(a)", False)):
            await run(session, "begin")
            assert session.sees_shared_schema
            await run(session, statement)
            assert session.sees_shared_schema is is_shared
            await run(session, "rollback")
            assert session.sees_shared_schema
        await run(session, "begin")
        await run(session, "insert into t values(1)")
        await run(session, "savepoint s")
        await run(session, "alter table t add column b")
        assert not session.sees_shared_schema
        await run(session, "rollback to s")
        assert session.sees_shared_schema
        await run(session, "rollback")

    play(tmp_path, scene)


def test_a_statement_that_was_prepared_before_meets_the_limit_that_ended_its_transaction(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("quick", replace(SETTINGS, transaction_idle_s=0.05))
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        insert, rollback = await session.prepare("insert into t values(1)"), await session.prepare("rollback")
        await run(session, "begin")
        await run(session, "insert into t values(1)")
        session.check_prepared(insert)
        await asyncio.sleep(0.2)
        session.check_prepared(rollback)
        with pytest.raises(SqlError) as expired:
            session.check_prepared(insert)
        assert (expired.value.sqlstate, session.status) == ("25P03", TransactionStatus.FAILED)
        await run(session, "rollback")
        assert await run(session, "select * from t") == []

    play(tmp_path, scene, nodes=0)


def test_a_transaction_is_seen_by_others_only_after_its_commit(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        one, other = await database.session(), await database.session()
        await run(one, "create table t(a)")
        await run(one, "begin")
        await run(one, "insert into t values(1)")
        assert await run(one, "select a from t") == [(1,)]
        assert await run(other, "select a from t") == []
        await run(one, "commit")
        assert await run(other, "select a from t") == [(1,)]
        await run(one, "begin")
        await run(one, "delete from t")
        await run(one, "rollback")
        assert await run(one, "select a from t") == [(1,)]

    play(tmp_path, scene)


def test_a_write_on_a_stale_snapshot_fails_and_only_rollback_helps(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        one, other = await database.session(), await database.session()
        await run(one, "create table t(a)")
        await run(one, "insert into t values(1)")
        await run(one, "begin")
        await run(one, "savepoint s")
        assert await run(one, "select a from t") == [(1,)]
        await run(other, "update t set a = a + 1")
        assert await run(one, "select a from t") == [(1,)]
        assert await state_of(run(one, "update t set a = 10")) == "40001"
        assert one.status.value == "E"
        assert await state_of(run(one, "select 1")) == "25P02"
        assert await state_of(run(one, "rollback to s")) == "25P02"
        await run(one, "rollback")
        assert one.status is TransactionStatus.IDLE
        assert await run(one, "select a from t") == [(2,)]

    play(tmp_path, scene)


def test_transactions_that_begin_with_a_write_wait_for_each_other(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        setup = await database.session()
        await run(setup, "create table t(a)")
        await run(setup, "insert into t values(0)")

        async def add(begin: str) -> None:
            session = await database.session()
            for _ in range(5):
                await run(session, begin)
                await run(session, "update t set a = a + 1")
                assert len(await run(session, "select a from t")) == 1
                await run(session, "commit")

        async with asyncio.TaskGroup() as group:
            for begin in ("begin", "begin immediate", "start transaction isolation level serializable"):
                group.create_task(add(begin))
            for _ in range(5):
                group.create_task(run(await database.session(), "update t set a = a + 1"))
        assert await run(setup, "select a from t") == [(20,)]

    play(tmp_path, scene)


def test_savepoints_undo_a_part_and_mend_a_failed_transaction(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a unique)")
        await run(session, "begin")
        await run(session, "savepoint before")
        await run(session, "insert into t values(1)")
        await run(session, "savepoint inner")
        await run(session, "insert into t values(2)")
        assert await state_of(run(session, "insert into t values(1)")) == "23505"
        assert await state_of(run(session, "insert into t values(9)")) == "25P02"
        await run(session, "rollback to savepoint inner")
        assert session.status is TransactionStatus.ACTIVE
        await run(session, "insert into t values(3)")
        await run(session, "release savepoint inner")
        assert await state_of(run(session, "rollback to inner")) == "3B001"
        await run(session, "rollback to before")
        await run(session, "insert into t values(4)")
        await run(session, "commit")
        assert await run(session, "select a from t") == [(4,)]

    play(tmp_path, scene)


def test_a_failed_transaction_rolls_back_at_commit(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        await run(session, "begin")
        await run(session, "insert into t values(1)")
        assert await state_of(run(session, "select nosuch from t")) == "42703"
        assert session.status is TransactionStatus.FAILED
        await run(session, "commit")
        assert await run(session, "select * from t") == []
        assert (await session.prepare("/* nothing */")).kind is StatementKind.EMPTY

    play(tmp_path, scene)


def test_a_repeated_request_id_returns_the_stored_result(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(id integer primary key, a)")
        for _ in range(3):
            await session.set_request_id("r-1")
            assert await run(session, "insert into t(a) values(random()) returning id") == [(1,)]
        for _ in range(2):
            await session.set_request_id("r-2")
            await run(session, "begin")
            assert await affected(session, "insert into t(a) values(1), (2)") == 2
            assert await affected(session, "update t set a = 0") == 3
            await run(session, "commit")
        assert await run(session, "select count(*) from t") == [(3,)]
        await run(session, "insert into t(a) values(1)")
        assert await run(session, "select count(*) from t") == [(4,)]

    play(tmp_path, scene)


def test_transaction_ids_give_the_outcome_of_a_transaction(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        one, other = await database.session(), await database.session()
        await run(one, "create table t(a)")

        async def status(identity: object) -> object:
            assert isinstance(identity, int)
            return (await run(other, "select pg_xact_status($1)", (identity,)))[0][0]

        await run(one, "begin")
        read_first = (await run(one, "select pg_current_xact_id()"))[0][0]
        await run(one, "insert into t values(pg_current_xact_id())")
        assert (await run(one, "select pg_current_xact_id()"))[0][0] == read_first
        assert await status(read_first) == "in progress"
        await run(one, "commit")
        assert await status(read_first) == "committed"
        assert await run(one, "select a from t") == [(read_first,)]
        assert isinstance(read_first, int)
        assert read_first >> 40 == 1
        await run(one, "begin immediate")
        undone = (await run(one, "select pg_current_xact_id()"))[0][0]
        await run(one, "insert into t values(1)")
        await run(one, "rollback")
        assert await status(undone) == "aborted"
        assert await state_of(status((1 << 40) + 10**6)) == "22023"

    play(tmp_path, scene)


def test_a_transaction_that_holds_the_writer_too_long_is_ended(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("quick", replace(SETTINGS, transaction_idle_s=0.05))
        database = await cluster.leader()
        one, other = await database.session(), await database.session()
        await run(one, "create table t(a)")
        await run(one, "begin")
        await run(one, "insert into t values(1)")
        await run(other, "insert into t values(2)")
        assert await state_of(run(one, "insert into t values(3)")) == "25P03"
        assert one.status.value == "E"
        await run(one, "rollback")
        assert await run(one, "select a from t") == [(2,)]

    play(tmp_path, scene, nodes=0)


async def cancelled(session: SqlSession, sql: str) -> str:
    """The SQLSTATE of a statement that is cancelled until it ends; a cancellation between its calls meets nothing."""
    running = asyncio.get_running_loop().create_task(state_of(run(session, sql)))
    while not running.done():
        await asyncio.wait([running], timeout=0.05)
        session.cancel()
    return await running


def test_a_running_statement_can_be_cancelled(tmp_path: Path) -> None:
    endless = "with recursive c(x) as (select 1 union all select x + 1 from c) "

    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        for sql in (f"{endless} select max(x) from c", f"{endless} insert into t select max(x) from c"):
            assert await cancelled(session, sql) == "57014"
        await run(session, "begin immediate")
        assert await cancelled(session, f"{endless} insert into t select max(x) from c") == "57014"
        await run(session, "rollback")
        assert await run(session, "select * from t") == []

    play(tmp_path, scene)


def test_a_statement_that_runs_too_long_fails_alone(tmp_path: Path) -> None:
    endless = "with recursive c(x) as (select 1 union all select x + 1 from c) insert into t select max(x) from c"

    async def scene(cluster: Cluster) -> None:
        await cluster.start("strict", replace(SETTINGS, transaction_limit_s=0.1))
        database = await cluster.leader()
        one, other = await database.session(), await database.session()
        await run(one, "create table t(a)")
        long, short = await one.prepare(endless), await other.prepare("insert into t values(1)")
        async with asyncio.TaskGroup() as group:
            failing = group.create_task(state_of(one.start(long, ())))
            group.create_task(other.start(short, ()))
        assert await failing == "57014"
        assert await run(one, "select a from t") == [(1,)]

    play(tmp_path, scene, nodes=0)


def test_many_statements_share_log_entries(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        await run(await database.session(), "create table t(a integer primary key)")
        entries = _entries(cluster)
        sessions = [await database.session() for _ in range(50)]
        prepared = await sessions[0].prepare("insert into t values($1)")
        async with asyncio.TaskGroup() as group:
            for index, session in enumerate(sessions):
                group.create_task(session.start(prepared, (index,)))
        assert database.position == 51
        assert _entries(cluster) - entries < 5
        assert await run(sessions[0], "select count(*) from t") == [(50,)]

    play(tmp_path, scene)


def _entries(cluster: Cluster) -> int:
    return sum(len(ledger.entries) for ledger in cluster.stage.bookies.ledgers.values())


def test_a_transaction_that_was_ended_for_idleness_can_be_rolled_back_at_once(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("strict", replace(SETTINGS, transaction_idle_s=0.1))
        database = await cluster.leader()
        session, other = await database.session(), await database.session()
        await run(session, "create table t(a)")
        for end, state in (("rollback", ""), ("commit", "25P03")):
            await run(session, "begin")
            await run(session, "insert into t values(1)")
            await run(other, "insert into t values(2)")  # waits until the writer is free
            assert await state_of(run(session, end)) == state
            await run(session, "rollback")
        assert await run(session, "select a from t") == [(2,), (2,)]

    play(tmp_path, scene, nodes=0)


def test_a_refused_request_cannot_go_on_behind_a_savepoint(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        await run(session, "begin")
        await run(session, "savepoint s")
        await session.set_request_id("9999999999999:far-ahead")
        assert await state_of(run(session, "insert into t values(1)")) == "22023"
        assert await state_of(run(session, "rollback to s")) == "25P02"
        assert await state_of(run(session, "insert into t values(1)")) == "25P02"
        await run(session, "commit")
        assert await run(session, "select count(*) from t") == [(0,)]

    play(tmp_path, scene)


def test_no_table_is_renamed_to_a_name_of_ours(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        await run(session, "create table other(a)")
        assert await state_of(run(session, "alter table t rename to Triplicate_t")) == "42501"
        await run(session, "alter table t rename to u")
        await run(session, "insert into u values(1)")
        await run(session, "alter table u add column b")
        assert await run(session, "select * from u") == [(1, None)]

    play(tmp_path, scene)


def test_an_error_outside_of_the_engine_fails_the_transaction(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        session.fail()
        assert session.status is TransactionStatus.IDLE
        await run(session, "begin")
        await run(session, "insert into t values(1)")
        session.fail()
        assert await state_of(run(session, "select 1")) == "25P02"
        await run(session, "commit")
        assert await run(session, "select * from t") == []

    play(tmp_path, scene)


def test_a_claimed_writer_lets_nobody_else_change_what_was_read(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        one, other = await database.session(), await database.session()
        await run(one, "create table t(a)")
        await run(one, "insert into t values(1)")
        await one.claim_writer("SELECT FOR UPDATE")
        await run(other, "insert into t values(2)")
        await run(one, "begin")
        await one.claim_writer("SELECT FOR UPDATE")
        assert await run(one, "select count(*) from t") == [(2,)]
        waiting = asyncio.ensure_future(run(other, "insert into t values(3)"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await run(one, "commit")
        await waiting
        await run(one, "begin")
        assert await run(one, "select count(*) from t") == [(3,)]
        await run(other, "insert into t values(4)")
        assert await state_of(one.claim_writer("SELECT FOR UPDATE")) == "40001"
        await run(one, "rollback")

    play(tmp_path, scene)


def test_columns_are_remembered_until_the_schema_changes(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        assert await session.table_columns("t") is None
        await run(session, "create table t(a int)")
        assert await session.table_columns("t") == [("a", "INT")]
        await run(session, "alter table t add column b text")
        assert await session.table_columns("t") == [("a", "INT"), ("b", "TEXT")]

    play(tmp_path, scene)


def test_a_transaction_that_has_asked_for_the_columns_of_a_table_only_has_read_nothing(tmp_path: Path) -> None:
    """Otherwise it would fail with 40001 when it writes."""

    async def scene(cluster: Cluster) -> None:
        leader = await cluster.leader()
        session, other = await leader.session(), await leader.session()
        await run(other, "create table t(a integer primary key, b as (a + 1), c as (a + 2) stored)")
        await run(session, "begin")
        assert (await session.special_columns("t")).generated == ["b", "c"]
        assert (await session.special_columns("t")).key == ["a"]
        assert await session.table_columns("t") is not None
        await run(other, "insert into t values (1)")
        await session.claim_writer("COPY")
        assert (await session.special_columns("t")).generated == ["b", "c"]
        await run(session, "commit")

    play(tmp_path, scene)


def test_keys_are_returned_on_the_writer_in_a_snapshot_and_outside(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a int, b text, c int, primary key (c, a))")
        assert (await session.special_columns("t")).key == ["c", "a"]
        for first in ("select 1", "insert into t values (1, 'x', 2)"):
            await run(session, "begin")
            await run(session, first)
            assert (await session.special_columns("t")).key == ["c", "a"]
            assert await session.table_columns("t") == [("a", "INT"), ("b", "TEXT"), ("c", "INT")]
            assert (await session.special_columns("none")).key == []
            await run(session, "rollback")

    play(tmp_path, scene)


def test_what_is_computed_aside_runs_on_another_thread(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        assert await session.offload(threading.get_ident) != threading.get_ident()
        assert await session.offload(max, 1, 2) == 2

    play(tmp_path, scene)


def test_a_change_is_run_in_the_schema_it_was_prepared_for_and_in_no_other(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        one, other = await database.session(), await database.session()
        await run(one, "create table t(a)")
        version, insert = one.schema_version, await one.prepare("insert into t(a) values(1)")
        await one.set_request_id("r")
        # The change of the schema stands before it in the queue, so nobody could look in between.
        altered = asyncio.ensure_future(other.start(await other.prepare("alter table t add column b"), ()))
        await asyncio.sleep(0)
        with pytest.raises(SchemaMoved):
            await one.start(insert, (), version)
        await altered
        assert await run(other, "select count(*) from t") == [(0,)]
        # The request has not run, and its id is still there for what runs in its place.
        assert await affected(one, "insert into t(a) values(1)") == 1
        await other.set_request_id("r")
        assert await affected(other, "insert into t(a) values(1)") == 1
        assert await run(other, "select count(*) from t") == [(1,)]
        await one.start(await one.prepare("insert into t(a) values(2)"), (), one.schema_version)
        assert await run(other, "select count(*) from t") == [(2,)]

    play(tmp_path, scene)


def test_a_version_of_the_schema_that_was_undone_never_comes_back(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        one, other = await database.session(), await database.session()
        await run(one, "create table t(a)")
        seen = [one.schema_version]
        await run(one, "begin")
        assert one.schema_version == seen[0]
        await run(one, "savepoint s")
        for undo in ("rollback to s", "rollback"):
            await run(one, "alter table t add column b")
            seen.append(one.schema_version)
            await run(one, undo)
        await run(other, "alter table t add column c")
        seen += [one.schema_version, other.schema_version]
        assert one.schema_version not in seen[:-2]
        assert len(set(seen[:-1])) == len(seen) - 1

    play(tmp_path, scene)


def test_deferred_foreign_keys_are_checked_when_a_transaction_asks(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table p(a integer primary key)")
        await run(session, "create table c(a integer references p deferrable initially deferred)")
        await session.check_constraints()
        await run(session, "begin")
        await session.check_constraints()
        await run(session, "insert into c values(1)")
        await run(session, "savepoint s")
        assert await state_of(session.check_constraints()) == "23503"
        await run(session, "rollback to s")
        await run(session, "insert into p values(1)")
        await session.check_constraints()
        await run(session, "commit")
        assert await run(session, "select count(*) from c") == [(1,)]

    play(tmp_path, scene)


def test_a_cancel_is_not_lost_while_a_long_text_is_translated(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        begun, may_end = threading.Event(), threading.Event()

        def translate() -> str:
            begun.set()
            assert may_end.wait(LIMIT_S)
            return "translated"

        working = asyncio.create_task(state_of(session.offload(translate)))
        assert await asyncio.to_thread(begun.wait, LIMIT_S)
        session.cancel()
        may_end.set()
        assert await working == "57014"
        assert await session.offload(translate) == "translated"

    play(tmp_path, scene)
