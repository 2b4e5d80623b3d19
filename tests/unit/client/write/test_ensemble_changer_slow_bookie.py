"""A bookie that holds back a writer's window for long is replaced, if another one can be chosen. In virtual time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.client.cluster import FakeCluster, fake_cluster
from triplicate.client import Client, LedgerWriter
from triplicate.config import ClientSettings
from triplicate.runtime import first_of, sleep
from triplicate.sim.host import World

SETTINGS = ClientSettings(window_entries=50, channel_window_entries=200, slow_bookie_limit_s=4.0, long_poll=False)
ADD_S = 0.01
SLOW_S = 1.0
"""Far below `add_timeout_s`."""


def play(names: str, test: Callable[[FakeCluster, Client], Coroutine[Any, Any, None]], settings: ClientSettings = SETTINGS) -> None:
    async def on_host() -> None:
        async with fake_cluster(names, simulated=host.port) as cluster, cluster.client(settings) as client:
            for bookie in cluster.bookies.values():
                bookie.add_delay_s = ADD_S
            await test(cluster, client)

    async def main() -> None:
        await host.call(on_host())

    world = World(1)
    host = world.start_host("client")
    try:
        world.run(main())
    finally:
        world.close()


async def write_for(cluster: FakeCluster, writer: LedgerWriter, seconds: float) -> int:
    """Append one entry after the other as fast as the window allows, and return the number of entries."""
    written = 0

    async def append() -> None:
        nonlocal written
        while True:
            await writer.append(b"x")
            written += 1

    await first_of([sleep(cluster.host.clock, seconds), *(append() for _ in range(100))], name="appends")
    return written


@pytest.mark.parametrize("ack_quorum", [2, 3])
def test_a_bookie_that_holds_the_window_back_is_replaced(ack_quorum: int) -> None:
    async def test(cluster: FakeCluster, client: Client) -> None:
        writer = await client.create(ack_quorum=ack_quorum)
        slow, *others = writer.metadata.last_segment.ensemble
        await write_for(cluster, writer, 1.0)
        cluster[slow].add_delay_s = SLOW_S
        held = await write_for(cluster, writer, 3.0)
        assert writer.ensemble_changes == 0, "not before the limit"
        await write_for(cluster, writer, 6.0)
        assert writer.ensemble_changes == 1
        ensemble = writer.metadata.last_segment.ensemble
        assert slow not in ensemble
        assert set(others) < set(ensemble)
        assert await write_for(cluster, writer, 3.0) > 3 * held
        assert writer.ensemble_changes == 1
        last = await writer.close()
        reader = await client.open(writer.ledger_id)
        assert len(await reader.read(0, last)) == last + 1

    play("abcd", test)


def test_without_a_spare_the_slow_bookie_stays() -> None:
    async def test(cluster: FakeCluster, client: Client) -> None:
        writer = await client.create(ack_quorum=3)
        cluster[writer.metadata.last_segment.ensemble[0]].add_delay_s = SLOW_S
        await write_for(cluster, writer, 20.0)
        assert writer.ensemble_changes == 0
        assert writer.missing_bookies == ()
        assert not writer.has_missed_bookies
        assert cluster.told("client.bookie_failed") == []

    play("abc", test)


@pytest.mark.parametrize("settings", [replace(SETTINGS, slow_bookie_limit_s=0.0), replace(SETTINGS, delay_ensemble_change=True)])
def test_by_setting_a_slow_bookie_stays(settings: ClientSettings) -> None:
    async def test(cluster: FakeCluster, client: Client) -> None:
        writer = await client.create(ack_quorum=3)
        cluster[writer.metadata.last_segment.ensemble[0]].add_delay_s = SLOW_S
        await write_for(cluster, writer, 12.0)
        assert writer.ensemble_changes == 0

    play("abcd", test, settings)


def test_a_slow_bookie_that_holds_nothing_back_stays() -> None:
    async def test(cluster: FakeCluster, client: Client) -> None:
        writer = await client.create(ack_quorum=2)
        cluster[writer.metadata.last_segment.ensemble[0]].add_delay_s = SLOW_S
        clock = cluster.host.clock
        for _ in range(600):
            await writer.append(b"x")
            await sleep(clock, 0.02)
        assert writer.ensemble_changes == 0

    play("abcd", test)


def test_when_all_are_slow_none_is_replaced() -> None:
    async def test(cluster: FakeCluster, client: Client) -> None:
        writer = await client.create(ack_quorum=3)
        for bookie in cluster.bookies.values():
            bookie.add_delay_s = SLOW_S
        await write_for(cluster, writer, 12.0)
        assert writer.ensemble_changes == 0

    play("abcd", test)
