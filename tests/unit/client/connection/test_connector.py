"""Connections come about while the metadata are silent, or a bookie has lost its registration: to the address last known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.errors import BookieUnavailable, ConnectionLost, ReadFailed, RecoveryFailed
from triplicate.ledger import LedgerState
from triplicate.metadata import InjectedFault, bookie_service
from triplicate.wire import ReadRequest, Status

SETTINGS = replace(QUICK, address_wait_s=0.05, connect_timeout_s=2.0)
SILENT = InjectedFault(delay_before_s=3600.0)
LOST = InjectedFault(raise_before=ConnectionLost("the store is away"))
BOTH_WAYS = pytest.mark.parametrize("fault", [SILENT, LOST], ids=["silent", "lost"])


@contextmanager
def away(cluster: FakeCluster, fault: InjectedFault = SILENT) -> Iterator[None]:
    cluster.store.fault = lambda session, operation, path: fault
    try:
        yield
    finally:
        cluster.store.fault = None


async def reset(cluster: FakeCluster, names: str = "abc") -> None:
    """Break the TCP connections of these bookies, and wait until both ends know."""
    before = len(cluster.told("client.connection_lost"))
    broken = 0
    for name in names:
        for connection in list(cluster[name].connections):
            connection.abort()
            broken += 1
    await eventually(lambda: len(cluster.told("client.connection_lost")) >= before + broken)


@BOTH_WAYS
def test_appends_and_reads_go_on_over_new_connections_while_the_metadata_are_away(fault: InjectedFault) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(SETTINGS) as client:
            writer = await client.create()
            await writer.append(b"before")
            await cluster.settled(writer.ledger_id, 0)
            reader = await client.open(writer.ledger_id)
            with away(cluster, fault):
                for entry_id in range(1, 4):
                    await reset(cluster)
                    async with asyncio.timeout(10):
                        assert await writer.append(b"during") == entry_id
                        assert (await reader.read_unconfirmed(entry_id, entry_id))[0].payload == b"during"
            # The connection of one bookie may come back after an ack quorum has acknowledged the last append.
            await eventually(lambda: writer.missing_bookies == ())
            assert writer.ensemble_changes == 0
            assert await writer.append(b"after") == 4
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 4)) == 3)
            # An entry that was acknowledged while a bookie was missing has its ack quorum only.
            assert all(len(cluster.holders(writer.ledger_id, entry_id)) >= 2 for entry_id in range(4))
            assert {facts["bookie"] for facts in cluster.told("client.connected_from_memory")} == set("abc")

    run(main())


def test_the_metadata_are_waited_for_no_longer_than_the_setting_says() -> None:
    async def main() -> None:
        settings = replace(SETTINGS, address_wait_s=0.3, connect_timeout_s=30.0, add_timeout_s=30.0)
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            await writer.append(b"0")
            await cluster.settled(writer.ledger_id, 0)
            with away(cluster):
                await reset(cluster)
                began = asyncio.get_running_loop().time()
                async with asyncio.timeout(20):
                    await writer.append(b"1")
                assert asyncio.get_running_loop().time() - began >= 0.3

    run(main())


def test_a_recovery_connects_to_known_bookies_while_the_metadata_are_away() -> None:
    async def main() -> None:
        settings = replace(SETTINGS, metadata_timeout_s=30.0)
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            await writer.append_many([b"x"] * 5)
            await cluster.settled(writer.ledger_id, 4)
            writer.abandon()
            store = cluster.store

            def marked(session: int, operation: str, path: str) -> InjectedFault | None:
                """The store goes away as soon as the ledger is marked for recovery."""
                return LOST if operation != "set" and gone else None

            gone = False
            store.fault = marked
            update = cluster.metadata.ledgers.update

            async def then_gone(*arguments: object) -> object:
                nonlocal gone
                found = await update(*arguments)  # type: ignore[arg-type]
                gone = found.value.state == LedgerState.IN_RECOVERY
                return found

            cluster.metadata.ledgers.update = then_gone  # type: ignore[method-assign, assignment]
            recovering = asyncio.ensure_future(client.recover(writer.ledger_id))
            await eventually(lambda: gone and cluster.fenced(writer.ledger_id) == ["a", "b", "c"])
            gone = False
            store.fault = None
            try:
                reader = await recovering
            except RecoveryFailed:
                # No missing answer counted as a denial; now a registration confirms the addresses.
                reader = await client.recover(writer.ledger_id)
            assert reader.last_add_confirmed == 4

    run(main())


def test_a_bookie_without_a_registration_that_serves_is_reached() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(SETTINGS, add_timeout_s=10.0)) as client:
            writer = await client.create()
            await writer.append(b"0")
            await cluster.settled(writer.ledger_id, 0)
            await cluster.metadata.bookies.unregister("b")
            await reset(cluster)
            assert await writer.append(b"1") == 1
            await cluster.settled(writer.ledger_id, 1)
            assert {"bookie": "b", "registered": False} in cluster.told("client.connected_from_memory")
            # Nobody else is in doubt, and its next registration ends the doubt about it.
            await cluster.metadata.bookies.register("b", bookie_service("127.0.0.1", cluster.ports["b"]))
            await eventually(lambda: {"bookie": "b", "moved": False} in cluster.told("client.address_confirmed"))
            # A late answer of the metadata store leaves open whether another bookie is registered, and makes no doubt about it.
            assert [told["bookie"] for told in cluster.told("client.connected_from_memory") if told["registered"] is False] == ["b"]

    run(main())


def test_a_bookie_that_is_neither_registered_nor_there_is_unavailable_and_seldom_located() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(SETTINGS) as client:
            await client.create()
            directory = cluster.metadata.bookies
            await directory.unregister("b")
            await cluster["b"].stop()
            channel = client._context.pool.channel("b")
            answers: list[object] = []
            for number in range(3):
                await eventually(lambda: channel._connector._retry_at <= channel.now())
                channel.read(1, 0, lambda token, response, error: answers.append(error), None)
                await eventually(lambda number=number: len(answers) == number + 1)  # type: ignore[misc]
            assert all(isinstance(error, BookieUnavailable) for error in answers)
            assert "is not registered" in str(answers[-1])
            with pytest.raises(BookieUnavailable):
                await directory.locate("b", 1.0)

    run(main())


def test_what_is_missing_where_a_bookie_last_was_says_nothing() -> None:
    """Another process may have its address. Entries carry a digest, so those that are there can be believed."""

    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(SETTINGS) as client:
            writer = await client.create()
            await writer.append(b"0")
            await cluster.settled(writer.ledger_id, 0)
            await writer.close()
            reader = await client.open(writer.ledger_id)
            with away(cluster, LOST):
                await reset(cluster)
                kept = [cluster[name].ledgers.pop(writer.ledger_id) for name in "abc"]
                # Never "no such entry": the reader looks at the metadata, which do not answer either.
                with pytest.raises((ReadFailed, ConnectionLost)):
                    await reader.read(0, 0)
                for name, ledger in zip("abc", kept, strict=True):
                    cluster[name].ledgers[writer.ledger_id] = ledger
                assert (await reader.read(0, 0))[0].payload == b"0"

    run(main())


def test_a_bookie_that_listens_elsewhere_by_now_is_left_as_soon_as_the_metadata_say_so() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(SETTINGS) as client:
            writer = await client.create()
            await writer.append(b"0")
            await cluster.settled(writer.ledger_id, 0)
            await writer.close()
            reader = await client.open(writer.ledger_id)
            channel = client._context.pool.channel("b")
            with away(cluster, LOST):
                await reset(cluster)
                answers: list[object] = []
                channel.read(writer.ledger_id, 0, lambda token, response, error: answers.append(response), None)
                await eventually(lambda: len(answers) == 1)
                # It moves while the metadata are away, so that the client does not find it once more at its former address.
                before = cluster["b"].listener
                assert before is not None
                elsewhere = await cluster["b"].start(cluster.host)
                await before.close()
            await cluster.metadata.bookies.register("b", bookie_service("127.0.0.1", elsewhere))
            await eventually(lambda: {"bookie": "b", "moved": True} in cluster.told("client.address_confirmed"))
            await eventually(lambda: channel._transport is None)
            assert (await reader.read(0, 0))[0].payload == b"0"
            assert (await cluster.metadata.bookies.locate("b", 1.0)).info.address == ("127.0.0.1", elsewhere)

    run(main())


def test_an_address_belongs_to_the_bookie_that_was_last_seen_there() -> None:
    async def main() -> None:
        async with fake_cluster("ab") as cluster:
            directory = cluster.metadata.bookies
            first = await directory.resolve("a")
            await directory.unregister("a")
            location = await directory.locate("a", 1.0)
            assert (location.info, location.registered) == (first, False)
            await directory.register("z", first)
            with pytest.raises(BookieUnavailable, match="bookie a is not registered"):
                await directory.locate("a", 1.0)
            with away(cluster), pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await directory.locate("a", 0.01)
            assert (await directory.locate("b", 1.0)).registered is True
            with away(cluster):
                assert (await directory.locate("b", 0.01)).registered is None

    run(main())


def test_answers_that_say_no_count_again_once_the_address_is_confirmed() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(SETTINGS) as client:
            await client.create()
            channel = client._context.pool.channel("b")
            statuses: list[Status] = []

            async def ask() -> Status:
                count = len(statuses)
                channel.call(ReadRequest(77, 0), lambda token, response, error: statuses.append(response.status), None)
                await eventually(lambda: len(statuses) > count)
                return statuses[-1]

            assert await ask() is Status.NO_LEDGER
            with away(cluster, LOST):
                await reset(cluster, "b")
                assert await ask() is Status.UNKNOWN_LEDGER_STATE
            await eventually(lambda: bool(cluster.told("client.address_confirmed")))
            assert await ask() is Status.NO_LEDGER

    run(main())
