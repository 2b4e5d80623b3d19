"""Reads begin with near bookies. Bookies are on machines of three racks in two regions, by the table of locations."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.client.cluster import FakeCluster, fake_cluster
from triplicate.client import Client, LedgerReader
from triplicate.client.near_bookies import DISTANCES_AGE_S
from triplicate.config import ClientSettings
from triplicate.errors import ArgumentError, ConnectionLost
from triplicate.ledger import Ailment, EnsembleSegment
from triplicate.metadata import bookie_service
from triplicate.runtime import Metrics, sleep
from triplicate.sim.host import World
from triplicate.wire import BatchReadRequest, ReadRequest

SINGLE = ClientSettings(batch_read=False, sticky_read_entries=1, long_poll=False)
BATCHES = ClientSettings(long_poll=False, read_window_entries=8)
# In the simulation, these are three names of the host of the test.
TABLE = {"127.0.0.1": "/north/r1", "localhost": "/north/r2", "::1": "/south/r1"}
MACHINES = {"a": "127.0.0.1", "b": "localhost", "c": "::1"}
ENTRIES = 300
USUAL_S = 0.004


class Play:
    """A closed ledger on the bookies c, b, a (in this order of the ensemble), and a client that reads it."""

    def __init__(self, cluster: FakeCluster, client: Client, reader: LedgerReader) -> None:
        self.cluster = cluster
        self.client = client
        self.reader = reader

    async def read(self, entry_ids: Sequence[int], size: int = 1) -> float:
        """Read these entries one after the other, each with those that follow it; returns the longest time in seconds."""
        clock, longest_s = self.cluster.host.clock, 0.0
        for entry_id in entry_ids:
            began = clock.monotonic()
            entries = await self.reader.read(entry_id, entry_id + size - 1)
            longest_s = max(longest_s, clock.monotonic() - began)
            assert [entry.payload for entry in entries] == [b"%d" % number for number in range(entry_id, entry_id + size)]
        return longest_s

    def requests(self, bookie_id: str) -> int:
        """Reads that have reached a bookie."""
        return sum(isinstance(seen, ReadRequest | BatchReadRequest) for seen in self.cluster[bookie_id].seen)

    def counted(self) -> list[float]:
        """Reads by distance, as the metric counts them."""
        counter = self.client._context.metrics.reads_by_distance
        return [counter.labels(distance=name)._value.get() for name in ("own_rack", "own_region", "elsewhere")]

    async def refreshed(self) -> None:
        """Read again what the table and the registrations say."""
        await sleep(self.cluster.host.clock, DISTANCES_AGE_S)
        await self.read([0])
        await sleep(self.cluster.host.clock, 1.0)


def play(test: Callable[[Play], Coroutine[Any, Any, None]], settings: ClientSettings, table: Mapping[str, str] = TABLE) -> None:
    async def on_host() -> None:
        async with fake_cluster("", simulated=host.port) as cluster:
            for bookie_id, machine in MACHINES.items():
                await cluster.add(bookie_id, machine)
            for machine, location in table.items():
                await cluster.metadata.network_locations.set(machine, location)
            async with cluster.client() as writing:
                writer = await writing.create()
                for number in range(ENTRIES):
                    writer.append_nowait(b"%d" % number)
                await writer.close()
                await cluster.settled(writer.ledger_id, ENTRIES - 1)
            # All bookies have all entries, so the order of the ensemble may be stated.
            found = await cluster.metadata.ledgers.get(writer.ledger_id)
            segment = EnsembleSegment(0, tuple("cba"))
            await cluster.metadata.ledgers.update(writer.ledger_id, replace(found.value, segments=(segment,)), found.version)
            async with cluster.client(settings, Metrics()) as client:
                reader = await client.open(writer.ledger_id)
                for bookie in cluster.bookies.values():
                    bookie.read_delay_s = USUAL_S
                    bookie.seen.clear()
                await test(Play(cluster, client, reader))

    async def main() -> None:
        await host.call(on_host())

    world = World(1)
    host = world.start_host("client")
    try:
        world.run(main())
    finally:
        world.close()


@pytest.mark.parametrize("location", ["/north/r1", "127.0.0.1"])
@pytest.mark.parametrize("settings", [SINGLE, BATCHES])
def test_the_own_rack_is_read_first(settings: ClientSettings, location: str) -> None:
    async def test(one: Play) -> None:
        await one.read(range(100))
        assert one.requests("a") >= 100
        assert one.requests("b") <= 10, "the budget of additional reads"
        assert one.requests("c") == 0
        assert one.counted() == [one.requests("a"), one.requests("b"), one.requests("c")]

    play(test, replace(settings, network_location=location))


def test_without_a_location_bookies_that_are_away_are_read_last() -> None:
    async def test(one: Play) -> None:
        bookies = one.cluster.metadata.bookies
        await one.read(range(9))
        assert min(one.requests(name) for name in "abc") >= 3
        await bookies.unregister("b")
        await one.refreshed()
        before = one.requests("b")
        await one.read(range(99))
        assert one.requests("b") == before
        await bookies.register("b", bookie_service(MACHINES["b"], one.cluster.ports["b"]))
        await one.refreshed()
        await one.read(range(99))
        assert one.requests("b") >= before + 33

    play(test, SINGLE)


def test_without_a_location_all_bookies_are_read_and_none_is_counted() -> None:
    async def test(one: Play) -> None:
        await one.read(range(99))
        assert min(one.requests(name) for name in "abc") >= 33
        assert one.counted() == [0, 0, 0]

    play(test, SINGLE)


@pytest.mark.parametrize("location", ["unknown-machine", "/default-region/default-rack"])
def test_an_unknown_location_prefers_nothing(location: str) -> None:
    async def test(one: Play) -> None:
        await one.read(range(99))
        assert min(one.requests(name) for name in "abc") >= 33

    play(test, replace(SINGLE, network_location=location))


def test_bookies_of_the_own_region_take_turns_where_none_is_in_the_own_rack() -> None:
    async def test(one: Play) -> None:
        await one.read(range(100))
        assert min(one.requests("a"), one.requests("b")) >= 50
        assert one.requests("c") == 0

    play(test, replace(SINGLE, network_location="/north/r9"))


@pytest.mark.parametrize(("settings", "size"), [(SINGLE, 1), (BATCHES, 4)])
def test_a_slow_near_bookie_is_hedged_to_a_far_one_and_avoided(settings: ClientSettings, size: int) -> None:
    async def test(one: Play) -> None:
        usual_s = await one.read(range(150), size)
        one.cluster["a"].read_delay_s = 0.4
        assert await one.read(range(150, 290), size) <= 3 * usual_s < 0.4
        assert one.client._context.reads.health.rank("a") == Ailment.SLOW
        assert one.counted()[2] >= 130, "the far ones are healthy"

    play(test, replace(settings, network_location="/north/r1"), {**TABLE, "localhost": "/south/r2"})


def test_a_near_bookie_that_is_dead_costs_no_entry() -> None:
    async def test(one: Play) -> None:
        await one.cluster["a"].stop()
        await one.read(range(100))
        assert one.requests("b") >= 95, "the nearest of the others"

    play(test, replace(SINGLE, network_location="/north/r1"))


def test_a_catch_up_reads_all_bookies_of_the_own_region() -> None:
    async def test(one: Play) -> None:
        await one.read([0], ENTRIES)
        assert min(one.requests("a"), one.requests("b")) >= 10
        assert one.requests("c") == 0

    play(test, replace(BATCHES, network_location="/north/r1"))


def test_a_changed_table_changes_the_order_while_a_ledger_is_read() -> None:
    async def test(one: Play) -> None:
        await one.cluster.metadata.network_locations.set("::1", "/north/r0")
        await one.refreshed()
        before = one.requests("c")
        await one.read(range(50))
        assert one.requests("c") - before >= 50

    play(test, replace(SINGLE, network_location="/north/r0"))


def test_an_unregistered_bookie_is_read_last() -> None:
    async def test(one: Play) -> None:
        await one.cluster.metadata.bookies.unregister("a")
        await one.refreshed()
        before = one.requests("a")
        await one.read(range(50))
        assert one.requests("a") == before

    play(test, replace(SINGLE, network_location="/north/r1"))


def test_a_failing_metadata_store_leaves_the_last_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(one: Play) -> None:
        await one.read([0])

        calls = 0

        async def fail() -> None:
            nonlocal calls
            calls += 1
            raise ConnectionLost("the store is away")

        monkeypatch.setattr(one.client.metadata.bookies, "readonly", fail)
        await one.refreshed()
        assert calls > 0
        before = one.requests("a")
        await one.read(range(50))
        assert one.requests("a") - before >= 50

    play(test, replace(SINGLE, network_location="/north/r1"))


def test_a_tail_leaves_its_polls_at_a_near_bookie() -> None:
    async def test(one: Play) -> None:
        async with one.cluster.client(replace(SINGLE, long_poll=True, network_location="/north/r1")) as client:
            writer = await one.client.create()
            await writer.append(b"first")
            await one.cluster.settled(writer.ledger_id, 0)
            reader = await client.open(writer.ledger_id)
            for bookie in one.cluster.bookies.values():
                bookie.seen.clear()
            assert await reader.wait_for_entry(1, 2.0) is None
            polls = {
                name: sum(isinstance(seen, ReadRequest) and seen.timeout_ms is not None for seen in one.cluster[name].seen)
                for name in "abc"
            }
            assert polls["a"] > 0
            assert polls["b"] == polls["c"] == 0
            writer.abandon()

    play(test, SINGLE)


def test_a_location_of_the_wrong_form_is_refused() -> None:
    async def test(one: Play) -> None:
        with pytest.raises(ArgumentError, match="no network location"):
            async with one.cluster.client(replace(SINGLE, network_location="/a/b/c")):
                pass

    play(test, SINGLE)
