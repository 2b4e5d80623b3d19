"""Batch reads: what a short answer says, what a damaged copy costs, and what an old bookie does to the handle."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import LIMIT_S, eventually
from triplicate.client import Client, LedgerReader
from triplicate.client.client_metrics import ClientMetrics
from triplicate.client.connection.pool import ChannelPool
from triplicate.client.context import ClientContext
from triplicate.client.hedged_reads import HedgedReads
from triplicate.client.read.batch_read import BatchRead
from triplicate.config import ClientSettings
from triplicate.errors import ArgumentError, NoSuchEntry, ReadFailed
from triplicate.ledger import DigestType, EntryCodec
from triplicate.runtime import Host, Metrics
from triplicate.wire import BatchReadRequest, ReadRequest, Status


async def filled(cluster: FakeCluster, client: Client, entries: int, *, ensemble_size: int = 3, write_quorum: int = 3) -> LedgerReader:
    async with await client.create(ensemble_size=ensemble_size, write_quorum=write_quorum) as writer:
        await writer.append_many([b"%d" % number for number in range(entries)])
    await cluster.settled(writer.ledger_id, entries - 1, write_quorum)
    return await client.open(writer.ledger_id)


def asked(cluster: FakeCluster, kind: type) -> int:
    return sum(isinstance(request, kind) for bookie in cluster.bookies.values() for request in bookie.seen)


def counted(metrics: Metrics) -> tuple[int, int]:
    """Entries read, and bytes."""
    lines = dict(line.rsplit(b" ", 1) for line in metrics.expose().splitlines())
    names = (b"bookkeeper_client_READ_ENTRY_entries_total", b"bookkeeper_client_READ_ENTRY_bytes_total")
    return int(float(lines[names[0]])), int(float(lines[names[1]]))


def payloads(entries: int) -> list[bytes]:
    return [b"%d" % number for number in range(entries)]


def test_a_range_is_read_in_batches_and_what_they_leave_out_is_asked_again() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            reader = await filled(cluster, client, 100)
            for bookie in cluster.bookies.values():
                bookie.answers_at_most = 7
            assert [entry.payload for entry in await reader.read(0, 99)] == payloads(100)
            assert asked(cluster, BatchReadRequest) == 15
            assert asked(cluster, ReadRequest) == 0

    run(main())


def test_a_batch_of_fewer_entries_than_asked_for_is_normal() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            reader = await filled(cluster, client, 20)
            assert [entry.payload for entry in await reader.read_batch(15, 100)] == payloads(20)[15:]
            for bookie in cluster.bookies.values():
                bookie.answers_at_most = 4
            assert [entry.entry_id for entry in await reader.read_batch(3, 100)] == [3, 4, 5, 6]
            assert [entry.entry_id for entry in await reader.read_batch(3, 2)] == [3, 4]
            with pytest.raises(NoSuchEntry):
                await reader.read_batch(20, 1)
            for entries, size in ((0, 0), (1, -1)):
                with pytest.raises(ArgumentError):
                    await reader.read_batch(0, entries, size)

    run(main())


def test_a_batch_is_bounded_by_bytes_but_for_its_first_entry() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            reader = await filled(cluster, client, 20)
            assert [entry.entry_id for entry in await reader.read_batch(0, 20, 1)] == [0]
            few = await reader.read_batch(0, 20, 300)
            assert 1 < len(few) < 8

    run(main())


@pytest.mark.parametrize("damaged", [0, 3])
def test_a_damaged_copy_is_read_from_another_replica(damaged: int) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            reader = await filled(cluster, client, 10)
            for name in ("a", "b"):
                entries = cluster[name].ledgers[reader.ledger_id].entries
                entries[damaged] = entries[damaged][:-1] + b"?"
            assert [entry.payload for entry in await reader.read(0, 9)] == payloads(10)
            batch = await reader.read_batch(0, 10)
            assert [entry.payload for entry in batch] == payloads(10)[: len(batch)]

    run(main())


@pytest.mark.parametrize("foreign", [False, True])
def test_an_entry_in_the_place_of_another_is_read_from_another_replica(foreign: bool) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            other = await filled(cluster, client, 10)
            reader = await filled(cluster, client, 10)
            for name in reader.metadata.ensemble_of(0)[:2]:
                entries = cluster[name].ledgers[reader.ledger_id].entries
                entries[4] = cluster[name].ledgers[other.ledger_id].entries[4] if foreign else entries[5]
            found = await reader.read(0, 9)
            assert [(entry.ledger_id, entry.entry_id, entry.payload) for entry in found] == [
                (reader.ledger_id, entry_id, payload) for entry_id, payload in enumerate(payloads(10))
            ]
            assert len(await reader.read_batch(0, 10)) in (4, 10)

    run(main())


@pytest.mark.parametrize("batch_read", [True, False])
def test_what_is_read_is_counted(batch_read: bool) -> None:
    async def main() -> None:
        metrics = Metrics()
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, batch_read=batch_read), metrics) as client:
            reader = await filled(cluster, client, 30)
            damaged = cluster["a"].ledgers[reader.ledger_id].entries
            damaged[3] = damaged[3][:-1] + b"?"
            entries = [*await reader.read(0, 29), *await reader.read_batch(0, 10)]
            assert counted(metrics) == (len(entries), sum(len(entry.payload) for entry in entries))

    run(main())


def test_a_bookie_that_fails_is_passed_over() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            reader = await filled(cluster, client, 40)
            await cluster["a"].stop()
            cluster["b"].when(BatchReadRequest, Status.IO_ERROR)
            assert [entry.payload for entry in await reader.read(0, 39)] == payloads(40)
            assert [entry.payload for entry in await reader.read_batch(0, 40)] == payloads(40)

    run(main())


def test_a_bookie_that_closes_the_connection_is_too_old_and_single_reads_take_over() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            reader = await filled(cluster, client, 30)
            other = await client.open(reader.ledger_id)
            writer = await client.create()
            await writer.append(b"x")
            for bookie in cluster.bookies.values():
                bookie.knows_batches = False
            assert [entry.payload for entry in await reader.read(0, 29)] == payloads(30)
            tried = asked(cluster, BatchReadRequest)
            assert 1 <= tried <= 3
            assert [entry.payload for entry in await reader.read_batch(2, 10)] == payloads(30)[2:12]
            assert asked(cluster, BatchReadRequest) == tried, "the handle asks for no more batches"
            assert [entry.payload for entry in await other.read(0, 29)] == payloads(30)
            assert asked(cluster, BatchReadRequest) > tried, "another handle tries for itself"
            await writer.append(b"y")
            assert writer.ensemble_changes == 0, "adds have a connection of their own"

    run(main())


@pytest.mark.parametrize(("settings", "write_quorum"), [(QUICK, 2), (replace(QUICK, batch_read=False), 3), (replace(QUICK, wire="v3"), 3)])
def test_batches_are_asked_for_only_where_they_fit(settings: ClientSettings, write_quorum: int) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            reader = await filled(cluster, client, 20, write_quorum=write_quorum)
            assert [entry.payload for entry in await reader.read(0, 19)] == payloads(20)
            assert [entry.payload for entry in await reader.read_batch(5, 3)] == payloads(20)[5:8]
            assert [entry.entry_id for entry in await reader.read_batch(5, 10, 1)] == [5]
            assert asked(cluster, BatchReadRequest) == 0

    run(main())


def test_batches_end_where_the_ensemble_changes() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append_many(payloads(10))
            await cluster[writer.metadata.last_segment.ensemble[0]].stop()
            await writer.append_many([b"%d" % number for number in range(10, 20)])
            # The ack quorum may answer before the writer notices the end of its connection.
            await eventually(lambda: len(writer.metadata.segments) == 2)
            await writer.close()
            reader = await client.open(writer.ledger_id)
            assert [entry.payload for entry in await reader.read(0, 19)] == payloads(20)
            boundary = writer.metadata.last_segment.first_entry_id
            assert [entry.entry_id for entry in await reader.read_batch(boundary - 2, 10)] == [boundary - 2, boundary - 1]

    run(main())


def test_that_no_replica_delivers_is_not_that_there_is_nothing() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            reader = await filled(cluster, client, 10)
            for name in "abc":
                del cluster[name].ledgers[reader.ledger_id].entries[4]
            with pytest.raises(ReadFailed, match="entry 4"):
                await reader.read(0, 9)
            with pytest.raises(NoSuchEntry, match="entry 4"):
                await reader.read_unconfirmed(0, 9)
            cluster["b"].when(BatchReadRequest, "drop")
            cluster["b"].when(ReadRequest, "drop")
            with pytest.raises(ReadFailed, match="entry 4"):
                await reader.read_unconfirmed(0, 9)

    run(main())


def test_unconfirmed_entries_can_be_read_before_they_are_confirmed() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append_many(payloads(3))
            reader = await client.open(writer.ledger_id)
            assert reader.last_add_confirmed < 2
            assert [entry.payload for entry in await reader.read_unconfirmed(0, 2)] == payloads(3)
            with pytest.raises(NoSuchEntry):
                await reader.read_unconfirmed(3, 3)

    run(main())


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("batch_read", [True, False])
def test_every_entry_that_one_replica_has_is_read(seed: int, batch_read: bool) -> None:
    """Copies are missing or damaged at random, answers are cut short, and one bookie may be down: one good copy of each is enough."""

    async def main() -> None:
        rng = random.Random(seed)
        # No bookie is silent here, so an answer may be late.
        settings = replace(QUICK, batch_read=batch_read, read_window_entries=16, read_timeout_s=LIMIT_S, add_timeout_s=LIMIT_S)
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            reader = await filled(cluster, client, 120)
            down = rng.choice(["", *cluster.bookies])
            for entry_id in range(120):
                spared = rng.choice([name for name in cluster.bookies if name != down])
                for name, bookie in cluster.bookies.items():
                    entries, fate = bookie.ledgers[reader.ledger_id].entries, rng.random()
                    if name != spared and fate < 0.2:
                        del entries[entry_id]
                    elif name != spared and fate < 0.4:
                        entries[entry_id] = entries[entry_id][:-1] + b"?"
            for bookie in cluster.bookies.values():
                bookie.answers_at_most = rng.randint(1, 20)
            if down:
                await cluster[down].stop()
            assert [entry.payload for entry in await reader.read(0, 119)] == payloads(120)
            first = rng.randrange(120)
            batch = await reader.read_batch(first, 30)
            assert [entry.payload for entry in batch] == payloads(120)[first : first + len(batch)]
            assert batch

    run(main())


class _Timers:
    """A clock that stands still but for the times of its timers, and a connection without answers."""

    def __init__(self, began: float) -> None:
        self.now = began
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def monotonic(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> SimpleNamespace:
        timer = when, callback
        self.waiting.append(timer)
        return SimpleNamespace(cancel=lambda: self.waiting.remove(timer) if timer in self.waiting else None)

    def fire(self) -> None:
        self.waiting.sort(key=lambda timer: timer[0])
        when, callback = self.waiting.pop(0)
        self.now = max(self.now, when)
        callback()


@pytest.mark.parametrize("replicas", [["a"], ["a", "b"]])
def test_a_bookie_that_is_silent_until_the_limit_needs_no_further_timer(replicas: list[str]) -> None:
    """The rest of the time, computed from the time waited, could be too short for the clock: the timer came at the same moment for ever
    (seed 1768)."""
    chance = random.Random(1)
    for _ in range(500):
        clock = _Timers(chance.uniform(0.0, 100_000.0))
        host = SimpleNamespace(clock=clock, trace=lambda kind, **facts: None)
        pool = SimpleNamespace(wire="v2", is_closed=False, batch_channel=lambda bookie_id: SimpleNamespace(call=lambda *arguments: None))
        settings = replace(QUICK, hedge_read_s=0.05)
        reads = HedgedReads(cast("Host", host), settings, cast("ChannelPool", pool), ClientMetrics(Metrics()))
        context = SimpleNamespace(host=host, pool=pool, reads=reads, settings=settings)
        codec = EntryCodec(7, DigestType.CRC32C, b"p")
        BatchRead(cast("ClientContext", context), codec, 0, 4, 1000, replicas, lambda read: None, lambda: True)
        fired = 0
        while clock.waiting:
            clock.fire()
            fired += 1
            assert fired <= len(replicas), "the timer is set again at the moment at which it came"
