"""Deferred sync and force: what is acknowledged, what is kept, and what ends the writer."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import LedgerWriter
from triplicate.errors import BookieError, BookieUnavailable, HandleClosed, LedgerClosed, OutcomeUnknown, RequestTimeout
from triplicate.ledger import EntryCodec, LedgerState
from triplicate.wire import AddRequest, ForceRequest, Status

WIRES = pytest.mark.parametrize("wire", ["v2", "v3"])


def member(writer: LedgerWriter, position: int) -> str:
    return writer.metadata.last_segment.ensemble[position]


@WIRES
def test_adds_with_deferred_sync_are_acknowledged_and_only_force_confirms_them(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, wire=wire)) as client:
            writer = await client.create(deferred_sync=True)
            assert [await writer.append(b"four") for _ in range(3)] == [0, 1, 2]
            assert (writer.last_add_confirmed, writer.last_add_pushed, writer.length) == (-1, 2, 0)
            assert all(request.deferred_sync for request in cluster["a"].seen if isinstance(request, AddRequest))
            assert await writer.force() == 2
            assert (writer.last_add_confirmed, writer.length) == (2, 12)
            await writer.append(b"later")
            assert writer.last_add_confirmed == 2
            codec = EntryCodec(writer.ledger_id, writer.metadata.digest_type, b"")
            carried = [codec.decode(body).last_add_confirmed for body in cluster["a"].ledgers[writer.ledger_id].entries.values()]
            assert carried == [-1, -1, -1, 2]
            assert await writer.close() == 2
            metadata = await cluster.metadata_of(writer.ledger_id)
            assert (metadata.state, metadata.last_entry_id, metadata.length) == (LedgerState.CLOSED, 2, 12)
            reader = await client.open(writer.ledger_id)
            assert [entry.payload for entry in await reader.read(0, 2)] == [b"four"] * 3

    run(main())


def test_an_empty_ledger_is_forced_at_once() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, await client.create(deferred_sync=True) as writer:
            assert await writer.force() == -1
            assert not any(isinstance(request, ForceRequest) for name in "abc" for request in cluster[name].seen)

    run(main())


def test_force_covers_what_was_acknowledged_in_order_when_it_was_called() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, add_timeout_s=10.0)) as client:
            writer = await client.create(deferred_sync=True)
            await writer.append(b"0")
            cluster["a"].when(ForceRequest, "hold")
            force = asyncio.ensure_future(writer.force())
            await eventually(lambda: len(cluster["a"].held) == 1)
            assert await writer.append(b"1") == 1, "adds go on while a force is under way"
            cluster["a"].obey()
            assert await force == 0
            for name in "ab":
                cluster[name].when(AddRequest, "hold", entry_id=2)
            waiting, behind = writer.append_nowait(b"2"), writer.append_nowait(b"3")
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 3)) == 3)
            assert await writer.force() == 1, "entry 3 is on all bookies, but entry 2 is not"
            for name in "ab":
                cluster[name].obey()
            assert (await waiting, await behind) == (2, 3)
            assert await writer.force() == 3

    run(main())


def test_force_needs_every_bookie_of_the_ensemble() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create(deferred_sync=True)
            await writer.append(b"0")
            cluster[member(writer, 2)].when(ForceRequest, Status.IO_ERROR)
            with pytest.raises(BookieError, match=rf"force of ledger 0 failed.*bookie {member(writer, 2)} answered IO_ERROR"):
                await writer.force()
            assert writer.last_add_confirmed == -1
            assert writer.failure is None
            cluster[member(writer, 2)].obey()
            assert await writer.force() == 0, "a force may be tried again"

    run(main())


def test_a_bookie_that_stays_silent_fails_the_force_in_time() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create(deferred_sync=True)
            await writer.append(b"0")
            cluster["b"].when(ForceRequest, "drop")
            with pytest.raises(RequestTimeout, match="bookie b"):
                await writer.force()

    run(main())


@pytest.mark.parametrize("fault", ["refuses", "dies"])
def test_a_failed_bookie_ends_a_writer_with_deferred_sync_and_its_ensemble_stays(fault: str) -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create(deferred_sync=True)
            await writer.append(b"0")
            assert await writer.force() == 0
            ensemble = writer.metadata.last_segment.ensemble
            if fault == "dies":
                await cluster[member(writer, 1)].stop()
            else:
                cluster[member(writer, 1)].when(AddRequest, Status.IO_ERROR)
            await asyncio.gather(writer.append(b"1"), return_exceptions=True)  # Two of three may still acknowledge this one.
            await asyncio.wait_for(eventually(lambda: writer.failure is not None), 3)
            with pytest.raises(OutcomeUnknown, match="deferred sync, for which the ensemble never changes"):
                await writer.append(b"2")
            assert writer.ensemble_changes == 0
            assert await writer.close() == 0
            metadata = await cluster.metadata_of(writer.ledger_id)
            assert (len(metadata.segments), metadata.last_segment.ensemble, metadata.last_entry_id) == (1, ensemble, 0)

    run(main())


def test_force_does_not_believe_a_bookie_that_was_restarted() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create(deferred_sync=True)
            await writer.append(b"0")
            assert await writer.force() == 0
            await writer.append(b"lost on two bookies")
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 1)) == 3)
            await asyncio.sleep(0.02)
            for position in (0, 1):
                bookie = cluster[member(writer, position)]
                await bookie.stop()
                bookie.lose_what_is_not_synced()
                await cluster.restart(bookie.bookie_id)
            await asyncio.sleep(0.05)
            with pytest.raises((OutcomeUnknown, BookieUnavailable)):
                await writer.force()
            with pytest.raises((OutcomeUnknown, BookieUnavailable)):
                await writer.force()
            assert writer.last_add_confirmed == 0
            assert await writer.close() == 0

    run(main())


def test_a_lost_connection_does_no_harm_when_everything_was_forced() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create(deferred_sync=True)
            await writer.append(b"0")
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 0)) == 3)
            assert await writer.force() == 0
            await asyncio.sleep(0.02)
            await cluster["a"].stop()
            await cluster.restart("a")
            await asyncio.sleep(0.05)
            assert await writer.append(b"1") == 1
            assert await writer.force() == 1
            assert await writer.close() == 1

    run(main())


@WIRES
def test_a_ledger_without_deferred_sync_can_be_forced_too(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, wire=wire)) as client, await client.create() as writer:
            await writer.append(b"0")
            assert writer.last_add_confirmed == 0
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 0)) == 3)
            assert await writer.force() == 0
            assert [sum(isinstance(request, ForceRequest) for request in cluster[name].seen) for name in "abc"] == [1, 1, 1]

    run(main())


def test_closing_waits_for_a_force_and_ending_fails_it() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, read_timeout_s=10.0)) as client:
            writer = await client.create(deferred_sync=True)
            await writer.append(b"0")
            cluster["a"].when(ForceRequest, "hold")
            force = asyncio.ensure_future(writer.force())
            await eventually(lambda: len(cluster["a"].held) == 1)
            closing = asyncio.ensure_future(writer.close())
            await asyncio.sleep(0.02)
            assert not closing.done()
            with pytest.raises(HandleClosed):
                await writer.force()
            cluster["a"].obey()
            assert (await force, await closing) == (0, 0)

            other = await client.create(deferred_sync=True)
            await other.append(b"0")
            cluster["a"].when(ForceRequest, "hold")
            force = asyncio.ensure_future(other.force())
            await eventually(lambda: len(cluster["a"].held) == 1)
            assert await other.close(wait=False) == -1
            with pytest.raises(LedgerClosed):
                await force

    run(main())


@WIRES
def test_a_cancelled_force_counts_all_the_same(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, wire=wire)) as client:
            writer = await client.create(deferred_sync=True)
            await writer.append(b"0")
            cluster["c"].when(ForceRequest, "hold")
            force = asyncio.ensure_future(writer.force())
            await eventually(lambda: len(cluster["c"].held) == 1)
            force.cancel()
            cluster["c"].obey()
            await eventually(lambda: writer.last_add_confirmed == 0)

    run(main())


@WIRES
def test_recovery_keeps_what_was_acknowledged_and_still_stored(wire: str) -> None:
    async def main() -> None:
        settings = replace(QUICK, wire=wire)
        async with fake_cluster() as cluster, cluster.client(settings) as client, cluster.client(settings) as other:
            writer = await client.create(deferred_sync=True)
            await writer.append_many([b"0", b"1"])
            assert await writer.force() == 1
            await writer.append_many([b"2", b"3"])
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 3)) == 3)
            for name in "ab":
                cluster[name].lose_what_is_not_synced()
            reader = await other.recover(writer.ledger_id)
            assert reader.last_add_confirmed in (1, 2, 3), "forced entries are there, the others may be"
            assert [entry.payload for entry in await reader.read(0, 1)] == [b"0", b"1"]

    run(main())


@WIRES
def test_ids_of_the_callers_and_deferred_sync_go_together(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, wire=wire)) as client:
            writer = await client.create_adv(deferred_sync=True)
            futures = [writer.append_nowait(entry_id, b"three") for entry_id in (1, 0, 3)]
            assert (await futures[0], await futures[1]) == (1, 0)
            assert writer.last_add_confirmed == -1
            assert await writer.force() == 1
            assert (writer.last_add_confirmed, writer.length) == (1, 10)
            assert await writer.append(2, b"two") == 2
            assert await futures[2] == 3
            assert await writer.close() == 1

    run(main())
