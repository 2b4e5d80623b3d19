"""A leader answers reads on its own while its lease holds, and its successor waits for the end of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sql.cluster import Cluster, affected, play, run, state_of
from tests.unit.sql.held_log import HeldLog, SetClock, database_at, play_leased
from tests.waiting import eventually
from triplicate.config.log_settings import LogSettings
from triplicate.errors import ArgumentError, FormatError, LogFenced
from triplicate.replica.core.lease import Lease, wait_s
from triplicate.sql import SqlDatabase, create_database, database_info
from triplicate.sql.executor.loop_reader import LoopReader
from triplicate.sql.executor.reader_connection import ReaderConnection
from triplicate.sql.hosting.database_directory import DatabaseInfo, decode_info, encode_info, log_purpose

LEASE_S = 0.75


def task(work: Any) -> asyncio.Task[Any]:
    return asyncio.get_running_loop().create_task(work)


@pytest.mark.parametrize("transaction", [False, True])
def test_reads_append_no_more_than_the_lease_needs(tmp_path: Path, transaction: bool) -> None:
    async def scene(database: SqlDatabase, log: HeldLog, clock: SetClock) -> None:
        session = await database.session()
        before = log.noops
        for _ in range(200):
            clock.now += 0.01
            if transaction:
                await run(session, "begin")
            assert await run(session, "select a from t") == [(1,)]
            if transaction:
                await run(session, "commit")
            await asyncio.sleep(0)
        assert 1 <= log.noops - before <= 2.0 / (LEASE_S / 3) + 1

    play_leased(tmp_path, LEASE_S, scene)


def test_nothing_is_appended_while_nobody_reads(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog, clock: SetClock) -> None:
        session = await database.session()
        await run(session, "select a from t")
        before = log.noops, log.entries
        for _ in range(50):
            clock.now += 0.1
            await asyncio.sleep(0.001)
        assert (log.noops, log.entries) == before
        await run(session, "select a from t")
        assert log.noops == before[0] + 1

    play_leased(tmp_path, LEASE_S, scene)


def test_writes_extend_the_lease_and_reads_beside_them_append_nothing(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog, clock: SetClock) -> None:
        session = await database.session()
        await run(session, "insert into t values(2)")
        before = log.noops
        for _ in range(20):
            clock.now += 0.2
            await run(session, "update t set a = a")
            await run(session, "select a from t")
            assert await affected(session, "delete from t where a = 99") == 0
            await run(session, "begin immediate")
            await run(session, "select a from t")
            await run(session, "commit")
        assert log.noops == before

    play_leased(tmp_path, LEASE_S, scene)


@pytest.mark.parametrize("statement", ["select a from t", "delete from t where a = 99", "select nosuch from t"])
def test_a_deposed_leader_answers_nothing_after_its_lease(tmp_path: Path, statement: str) -> None:
    async def scene(database: SqlDatabase, log: HeldLog, clock: SetClock) -> None:
        session = await database.session()
        await run(session, "select a from t")
        log.held = True
        clock.now += LEASE_S
        answer = task(state_of(run(session, statement)))
        await log.sent(1)
        assert not answer.done()
        log.release(LogFenced("another leads"))
        assert await answer == "57P01"

    play_leased(tmp_path, LEASE_S, scene)


def test_the_lease_counts_from_the_sending_of_an_append(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog, clock: SetClock) -> None:
        writer, reader = await database.session(), await database.session()
        clock.now += LEASE_S
        log.held = True
        writing = task(run(writer, "insert into t values(2)"))
        await log.sent(1)
        clock.now += LEASE_S - 0.05
        log.release()
        await writing
        noops = log.noops
        clock.now += 0.1
        reading = task(run(reader, "select a from t"))
        await log.sent(1)
        assert log.noops == noops + 1
        assert not reading.done()
        log.release()
        assert await reading == [(1,), (2,)]

    play_leased(tmp_path, LEASE_S, scene)


@pytest.mark.parametrize("transaction", [False, True])
def test_a_process_held_still_between_its_look_at_the_lease_and_its_snapshot_does_not_answer(
    tmp_path: Path, transaction: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(database: SqlDatabase, log: HeldLog, clock: SetClock) -> None:
        session = await database.session()
        await run(session, "select a from t")
        if transaction:
            await run(session, "begin")

        def held_still(original: Any) -> Any:
            def method(self: object, *arguments: Any) -> Any:
                clock.now += 10.0
                return original(self, *arguments)

            return method

        for reader, name in ((LoopReader, "read"), (ReaderConnection, "begin"), (ReaderConnection, "start")):
            monkeypatch.setattr(reader, name, held_still(getattr(reader, name)))
        log.held = True
        reading = task(state_of(run(session, "select a from t")))
        await log.sent(1)
        assert not reading.done()
        log.release(LogFenced("another leads"))
        assert await reading == "57P01"

    play_leased(tmp_path, LEASE_S, scene)


async def started(database: SqlDatabase, log: HeldLog) -> asyncio.Task[None]:
    await database.follow()
    return asyncio.get_running_loop().create_task(database._lead(log, lambda: None), name="leading")


async def until_it_leads(database: SqlDatabase) -> None:
    await eventually(lambda: database.is_leader)


async def ended(leading: asyncio.Task[None]) -> None:
    leading.cancel()
    await asyncio.wait([leading])


def test_a_successor_waits_for_the_lease_and_the_error_of_clocks_before_it_appends_or_answers(tmp_path: Path) -> None:
    async def body() -> None:
        lease_s = 0.02
        database, clock = database_at(tmp_path, lease_s)
        await database.open()
        log = HeldLog(epoch=2)
        leading = await started(database, log)
        begun = clock.now
        for now in (begun, begun + lease_s, begun + lease_s * 1.02):
            clock.now = now
            await asyncio.sleep(5 * lease_s)
            assert not database.is_leader
            assert log.noops == 0
        clock.now = begun + wait_s(lease_s, database.settings.clock_rate_error) + 1e-6
        await until_it_leads(database)
        assert log.noops == 1
        await ended(leading)
        # The next epoch follows this process's own leadership, which has ended; a later one does not.
        own = await started(database, HeldLog(epoch=3))
        await until_it_leads(database)
        await ended(own)
        other = await started(database, HeldLog(epoch=5))
        await asyncio.sleep(5 * lease_s)
        assert not database.is_leader
        clock.now += 1
        await until_it_leads(database)
        await ended(other)
        await database.close()

    asyncio.run(asyncio.wait_for(body(), 20))


def test_a_leadership_that_ended_while_it_waited_spares_the_next_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        lease_s = 0.02
        database, clock = database_at(tmp_path, lease_s)
        await database.open()
        waiting = await started(database, HeldLog(epoch=2))
        await asyncio.sleep(lease_s)
        await ended(waiting)
        again = await started(database, HeldLog(epoch=3))
        await asyncio.sleep(5 * lease_s)
        assert not database.is_leader
        clock.now += 1
        await until_it_leads(database)
        await ended(again)
        await database.close()

    asyncio.run(asyncio.wait_for(body(), 20))


@pytest.mark.parametrize("rate_error", [0.0, 0.01, 0.2])
def test_a_wait_outlasts_a_lease_for_all_rates_of_clocks_within_the_bound(rate_error: float) -> None:
    for holder in (1 - rate_error, 1.0, 1 + rate_error):
        for successor in (1 - rate_error, 1.0, 1 + rate_error):
            lease = Lease(LEASE_S)
            lease.sending(0.0)
            lease.acknowledged(0.0)
            waited = wait_s(LEASE_S, rate_error) / successor  # in true seconds
            assert waited * holder + 1e-9 >= lease.ends_at


def test_a_node_whose_log_was_taken_over_answers_nothing_after_its_lease(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        first = cluster.leader_name()

        def entries() -> int:
            return sum(len(ledger.entries) for ledger in cluster.stage.bookies.ledgers.values())

        loop = asyncio.get_running_loop()
        before, begun = entries(), loop.time()
        for _ in range(200):
            await run(session, "select count(*) from t")
        assert entries() - before <= (loop.time() - begun) / (0.2 / 3) + 2
        info = cluster.nodes[first].databases.hosted["db"].info
        thief = await cluster.stage.logs().acting_for(log_purpose(info)).writer(info.log, owner="thief")
        await asyncio.sleep(0.3)
        assert await state_of(run(session, "select count(*) from t")) == "57P01"
        await thief.close()

    play(tmp_path, scene, nodes=1, lease_s=0.2)


def test_a_database_keeps_the_lease_it_was_made_with(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        settings = LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1)
        client = cluster.client("maker")
        made = await create_database(client, "by-default", settings)
        assert (await database_info(client, "by-default")).lease_ms == made.lease_ms == 500
        assert (await create_database(client, "without", settings, lease_s=0)).lease_ms == 0
        with pytest.raises(ArgumentError, match="a lease has 0 to 60 s"):
            await create_database(client, "too-long", settings, lease_s=61)

    play(tmp_path, scene, nodes=0)


def test_a_record_of_the_first_format_has_no_lease() -> None:
    info = DatabaseInfo("shop", bytes(range(16)), "database.shop.00010203", 1_764_000_000_000, 750)
    old = b'{"created":1764000000000,"id":"000102030405060708090a0b0c0d0e0f","log":"database.shop.00010203","name":"shop","v":1}'
    new = (
        b'{"created":1764000000000,"id":"000102030405060708090a0b0c0d0e0f","lease":750,"log":"database.shop.00010203","name":"shop","v":2}'
    )
    assert decode_info(old) == replace(info, lease_ms=0)
    assert encode_info(info) == new
    assert decode_info(new) == info
    for damaged in (new.replace(b'"v":2', b'"v":3'), new.replace(b'"lease":750,', b"")):
        with pytest.raises(FormatError):
            decode_info(damaged)
