"""Hedged reads, quarantine and the order of reads, in virtual time: bookies answer after a time that the test sets."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.client.cluster import FakeBookie, FakeCluster, fake_cluster
from triplicate.client import Client, LedgerReader
from triplicate.config import ClientSettings
from triplicate.errors import ReadFailed
from triplicate.ledger import Ailment
from triplicate.runtime import Metrics, sleep, timeout_at
from triplicate.sim.host import World
from triplicate.wire import BatchReadRequest, ReadRequest, Request, Status

SINGLE = ClientSettings(batch_read=False, sticky_read_entries=1, long_poll=False)
BATCHES = ClientSettings(long_poll=False)
USUAL_S = 0.004
"""Time in which the bookies of these tests usually answer a read."""
ENTRIES = 600


class Play:
    """A closed ledger on three bookies that answer reads in `USUAL_S`, and a reader of it."""

    def __init__(self, cluster: FakeCluster, client: Client, reader: LedgerReader, metrics: Metrics) -> None:
        self.cluster = cluster
        self.client = client
        self.reader = reader
        self.metrics = metrics
        self.ensemble = reader.metadata.last_segment.ensemble
        self.latencies_s: list[float] = []

    def bookie(self, position: int) -> FakeBookie:
        return self.cluster[self.ensemble[position]]

    async def read(self, entry_ids: Sequence[int], size: int = 1) -> None:
        """Read these entries one after the other, each with those that follow it."""
        clock = self.cluster.host.clock
        for entry_id in entry_ids:
            began = clock.monotonic()
            entries = await self.reader.read(entry_id, entry_id + size - 1)
            self.latencies_s.append(clock.monotonic() - began)
            assert [entry.payload for entry in entries] == [b"%d" % number for number in range(entry_id, entry_id + size)]

    def requests(self, position: int | None = None) -> int:
        """Reads that have reached a bookie, or all of them."""
        bookies = [self.bookie(number) for number in range(3)] if position is None else [self.bookie(position)]
        return sum(isinstance(seen, ReadRequest | BatchReadRequest) for bookie in bookies for seen in bookie.seen)

    def extra(self, reason: str) -> float:
        return self.client._context.metrics.speculative_reads.labels(reason=reason)._value.get()  # type: ignore[no-any-return]

    @property
    def extra_reads(self) -> float:
        return sum(self.extra(reason) for reason in ("late", "silent", "probe"))


def play(test: Callable[[Play], Coroutine[Any, Any, None]], settings: ClientSettings = SINGLE) -> None:
    async def on_host() -> None:
        metrics = Metrics()
        async with fake_cluster("abc", simulated=host.port) as cluster, cluster.client(settings, metrics) as client:
            writer = await client.create()
            for number in range(ENTRIES):
                writer.append_nowait(b"%d" % number)
            await writer.close()
            await cluster.settled(writer.ledger_id, ENTRIES - 1)
            reader = await client.open(writer.ledger_id)
            for bookie in cluster.bookies.values():
                bookie.read_delay_s = USUAL_S
            await test(Play(cluster, client, reader, metrics))

    async def main() -> None:
        await host.call(on_host())

    world = World(1)
    host = world.start_host("client")
    try:
        world.run(main())
    finally:
        world.close()


@pytest.mark.parametrize(("settings", "size"), [(SINGLE, 1), (BATCHES, 4)])
def test_a_read_waits_for_a_slow_bookie_no_longer_than_reads_usually_take(settings: ClientSettings, size: int) -> None:
    async def test(one: Play) -> None:
        await one.read(range(300), size)
        assert one.extra_reads <= 0.05 * 300 + 10, "the latencies vary, and the budget bounds what that costs"
        usual_s = max(one.latencies_s)
        one.latencies_s.clear()
        one.bookie(1).read_delay_s = 0.2
        await one.read(range(300, 590), size)
        assert max(one.latencies_s) < 3 * usual_s < 0.2
        assert one.client._context.reads.health.rank(one.ensemble[1]) == Ailment.SLOW
        assert one.extra("late") <= 0.05 * 590 + 10
        assert one.extra("silent") == 0

    play(test, settings)


def test_each_additional_read_is_counted_once() -> None:
    async def test(one: Play) -> None:
        await one.read(range(300))
        one.bookie(1).read_delay_s = 0.2
        requests, extra_reads = one.requests(), one.extra_reads
        await one.read(range(300, 590))
        assert one.extra_reads > extra_reads
        assert one.requests() - requests == 290 + one.extra_reads - extra_reads

    play(test)


@pytest.mark.parametrize("share", [0.05, 0.0])
def test_the_budget_bounds_the_additional_reads(share: float) -> None:
    """Every bookie pauses now and then, so no other one is better, and each late read would be sent again."""

    async def test(one: Play) -> None:
        await one.read(range(300))
        for begin in range(0, 600, 3):
            for position in range(3):
                one.bookie(position).read_delay_s = 0.1 if begin % 2 else USUAL_S
            await one.read(range(begin, begin + 3))
        assert one.extra("late") <= share * 900 + 10
        assert (one.extra("late") > 0) == (share > 0)

    play(test, replace(SINGLE, hedge_read_share=share, quarantine_first_s=0.001, quarantine_maximum_s=0.001))


def test_without_hedging_each_entry_is_read_once_from_its_replica() -> None:
    async def test(one: Play) -> None:
        one.bookie(1).read_delay_s = 0.2
        await one.read(range(300))
        assert one.requests() == 300
        assert [one.requests(position) for position in range(3)] == [100, 100, 100]
        assert one.extra_reads == 0

    play(test, replace(SINGLE, hedge_read_s=0.0))


def test_without_a_quantile_the_fixed_time_applies() -> None:
    async def test(one: Play) -> None:
        await one.read(range(300))
        one.bookie(1).read_delay_s = 0.2
        await one.read(range(300, 330))
        assert one.extra_reads == 0
        one.bookie(1).read_delay_s = 1.0
        one.latencies_s.clear()
        await one.read([331])
        assert one.extra("silent") == 1
        assert 0.5 <= max(one.latencies_s) < 0.6

    play(test, replace(SINGLE, hedge_read_quantile=0.0))


def test_a_slow_bookie_is_read_last_until_a_probe_is_answered_in_time() -> None:
    async def test(one: Play) -> None:
        await one.read(range(300))
        one.bookie(1).read_delay_s = 0.3
        await one.read(range(300, 400))
        before = one.requests(1)
        await one.read(range(400, 500))
        assert one.requests(1) == before, "it is in quarantine"
        assert one.client._context.avoided_bookies() == [one.ensemble[1]]
        clock = one.cluster.host.clock
        await sleep(clock, 11.0)
        await one.read(range(500, 520))
        assert one.requests(1) == before + 1, "one probe, which is late"
        one.bookie(1).read_delay_s = USUAL_S
        await sleep(clock, 11.0)
        await one.read(range(520, 540))
        assert one.requests(1) == before + 1, "the time was doubled"
        await sleep(clock, 11.0)
        await one.read(range(540, 599))
        assert one.extra("probe") == 2
        assert one.requests(1) > before + 10, "it is read like the others again"
        assert one.client._context.avoided_bookies() == []

    play(test)


@pytest.mark.parametrize("failure", ["close", Status.IO_ERROR])
def test_a_failing_bookie_is_read_last(failure: Status | str) -> None:
    async def test(one: Play) -> None:
        one.bookie(1).when(ReadRequest, failure)
        await one.read(range(100))
        before = one.requests(1)
        await one.read(range(100, 200))
        assert one.requests(1) == before
        one.bookie(1).obey()
        await sleep(one.cluster.host.clock, 11.0)
        await one.read(range(200, 230))
        assert one.requests(1) > before + 5

    play(test)


def test_a_new_ensemble_avoids_a_bookie_in_quarantine() -> None:
    async def test(one: Play) -> None:
        for name in "de":
            await one.cluster.add(name)
        one.bookie(1).when(ReadRequest, "close")
        await one.read(range(10))
        for _ in range(20):
            writer = await one.client.create()
            assert one.ensemble[1] not in writer.metadata.last_segment.ensemble

    play(test)


def test_a_late_answer_is_dropped() -> None:
    async def test(one: Play) -> None:
        await one.read(range(300))
        one.bookie(0).read_delay_s = 0.3
        await one.read([303])
        await sleep(one.cluster.host.clock, 1.0)
        assert all(not channel._unanswered for channel in one.client._context.pool._channels.values())
        await one.read(range(304, 320))

    play(test)


def test_an_entry_that_two_replicas_deliver_counts_once() -> None:
    """The first bookie answers late, while the last still delays the end of the range."""

    async def test(one: Play) -> None:
        await one.read(range(300))
        one.bookie(0).read_delay_s = 0.05
        one.bookie(2).read_delay_s = 0.4
        await one.read([0], 60)
        await one.read([60], 60)
        assert one.extra("late") > 0

    play(test, replace(SINGLE, hedge_read_share=0.02))


def test_consecutive_entries_are_read_from_one_bookie() -> None:
    async def test(one: Play) -> None:
        await one.reader.read(0, 191)
        for position in range(3):
            asked = [seen.entry_id for seen in one.bookie(position).seen if isinstance(seen, ReadRequest)]
            assert asked == list(range(64 * position, 64 * position + 64))

    play(test, replace(SINGLE, sticky_read_entries=64))


@pytest.mark.parametrize("window_entries", [50, 64])
def test_the_batches_of_a_range_are_spread_over_all_copies(window_entries: int) -> None:
    async def test(one: Play) -> None:
        entries = await one.reader.read(0, ENTRIES - 1)
        assert [entry.entry_id for entry in entries] == list(range(ENTRIES))
        requests = [one.requests(position) for position in range(3)]
        assert min(requests) >= sum(requests) // 3 - 1

    play(test, replace(BATCHES, read_window_entries=window_entries))


def test_a_tail_that_is_behind_reads_one_range_ahead() -> None:
    async def test(one: Play) -> None:
        clock = one.cluster.host.clock
        async with one.reader.tail() as tail:
            seen = await tail.next_entries()
            await sleep(clock, 1.0)
            before = one.requests()
            await sleep(clock, 1.0)
            assert one.requests() == before, "no more than one range is read ahead"
            began = clock.monotonic()
            seen += await tail.next_entries()
            assert clock.monotonic() == began, "it was read while the first one was processed"
            while some := await tail.next_entries():
                seen += some
        assert [entry.entry_id for entry in seen] == list(range(ENTRIES))

    play(test, BATCHES)


def hold_from_16(request: Request) -> str | None:
    return "hold" if isinstance(request, BatchReadRequest) and request.start_entry_id >= 16 else None


def test_a_tail_that_was_closed_reads_nothing_more() -> None:
    async def test(one: Play) -> None:
        tail = one.reader.tail()
        for position in range(3):
            one.bookie(position).rules.append(hold_from_16)
        await tail.next_entries()
        ahead = tail._ahead
        assert ahead is not None
        await tail.aclose()
        assert ahead.reading.future.cancelled()

    play(test, BATCHES)


def test_a_tail_whose_read_failed_continues_with_the_same_entries() -> None:
    async def test(one: Play) -> None:
        async with one.reader.tail() as tail:
            seen = await tail.next_entries()

            async def read_on() -> None:
                while some := await tail.next_entries():
                    seen.extend(some)

            for position in range(3):
                one.bookie(position).when(ReadRequest, Status.IO_ERROR, entry_id=150)
            with pytest.raises(ReadFailed):
                await read_on()
            for position in range(3):
                one.bookie(position).obey()
            await read_on()
        assert [entry.entry_id for entry in seen] == list(range(ENTRIES))

    play(test)


def test_an_iteration_that_was_cancelled_loses_no_entry() -> None:
    async def test(one: Play) -> None:
        clock, seen = one.cluster.host.clock, list[int]()
        async with one.reader.tail() as tail:
            while len(seen) < ENTRIES:
                try:
                    async with timeout_at(clock.monotonic() + 0.003):
                        seen += [entry.entry_id for entry in await tail.next_entries()]
                except TimeoutError:
                    seen += [entry.entry_id for entry in await tail.next_entries()]
        assert seen == list(range(ENTRIES))

    play(test)
