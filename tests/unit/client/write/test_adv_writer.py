"""Entries under ids of the caller's: any order, gaps, duplicates, the window, replaced bookies, the end."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import AdvLedgerWriter
from triplicate.errors import (
    ArgumentError,
    DuplicateEntry,
    HandleClosed,
    LedgerClosed,
    LedgerFenced,
    NotEnoughBookies,
    RecordTooLarge,
    WindowFull,
)
from triplicate.ledger import EntryCodec, LedgerState
from triplicate.wire import AddRequest, Status

WIRES = pytest.mark.parametrize("wire", ["v2", "v3"])


async def is_pending(*futures: asyncio.Future[int]) -> bool:
    await asyncio.sleep(0.02)
    return not any(future.done() for future in futures)


@WIRES
def test_entries_may_be_appended_in_any_order(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, wire=wire)) as client:
            writer = await client.create_adv()
            async with writer:
                order = [3, 1, 4, 0, 2]
                futures = {entry_id: writer.append_nowait(entry_id, f"entry {entry_id}".encode()) for entry_id in order}
                assert [await futures[entry_id] for entry_id in order] == order
                assert (writer.last_add_confirmed, writer.last_add_pushed, writer.length) == (4, 4, 35)
            reader = await client.open(writer.ledger_id)
            assert (reader.last_add_confirmed, reader.length) == (4, 35)
            entries = await reader.read(0, 4)
            assert [entry.payload for entry in entries] == [f"entry {i}".encode() for i in range(5)]
            assert {entry.entry_id: entry.length for entry in entries} == {3: 7, 1: 14, 4: 21, 0: 28, 2: 35}, "in the order of appending"

    run(main())


def test_a_gap_holds_back_what_follows() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, await client.create_adv() as writer:
            assert await writer.append(0, b"0") == 0
            second, third = writer.append_nowait(2, b"2"), writer.append_nowait(3, b"3")
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 3)) == 3)
            assert await is_pending(second, third)
            assert (writer.last_add_confirmed, writer.last_add_pushed, writer.length) == (0, 3, 1)
            assert await writer.append(1, b"1") == 1
            assert (await second, await third) == (2, 3)
            assert writer.last_add_confirmed == 3

    run(main())


def test_an_id_is_accepted_once() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create_adv()
            await writer.append(0, b"confirmed")
            pending = writer.append_nowait(5, b"pending")
            for entry_id in (0, 5):
                with pytest.raises(DuplicateEntry, match=f"entry {entry_id} of ledger"):
                    await asyncio.wait_for(writer.append(entry_id, b"again"), 3)
                with pytest.raises(DuplicateEntry):
                    writer.append_nowait(entry_id, b"again")
            assert not pending.done()
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 5)) == 3)
            sent = [request.entry_id for request in cluster["a"].seen if isinstance(request, AddRequest)]
            assert sent == [0, 5], "nothing was sent for the others"

    run(main())


def test_ids_that_no_entry_can_have_are_refused() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create_adv()
            for wrong in (-1, 2**63, "7", 1.0):
                with pytest.raises(ArgumentError, match="entry_id"):
                    await writer.append(wrong, b"x")  # type: ignore[arg-type]
            greatest = writer.append_nowait(2**63 - 1, b"x")
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 2**63 - 1)) == 3)
            assert not greatest.done()
            with pytest.raises(RecordTooLarge):
                await writer.append(0, bytes(QUICK.frame_limit_bytes))

    run(main())


def test_the_entry_that_all_wait_for_is_let_into_a_full_window() -> None:
    async def main() -> None:
        async with (
            fake_cluster() as cluster,
            cluster.client(replace(QUICK, window_entries=3)) as client,
            await client.create_adv() as writer,
        ):
            held_back = [writer.append_nowait(entry_id, b"x") for entry_id in (2, 3, 4)]
            with pytest.raises(WindowFull):
                writer.append_nowait(1, b"no room")
            waiting = [asyncio.ensure_future(writer.append(entry_id, b"x")) for entry_id in (6, 1, 5)]
            assert await is_pending(*held_back, *waiting)
            with pytest.raises(DuplicateEntry):
                await writer.append(6, b"it waits")
            assert await asyncio.wait_for(writer.append(0, b"x"), 3) == 0
            assert [await future for future in (*held_back, *waiting)] == [2, 3, 4, 6, 1, 5]

    run(main())


def test_an_entry_that_was_cancelled_while_it_waited_may_be_appended_again() -> None:
    async def main() -> None:
        async with (
            fake_cluster() as cluster,
            cluster.client(replace(QUICK, window_entries=1)) as client,
            await client.create_adv() as writer,
        ):
            held_back = writer.append_nowait(2, b"x")
            waiting = asyncio.ensure_future(writer.append(1, b"cancelled"))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.sleep(0)
            again = asyncio.ensure_future(writer.append(1, b"kept"))
            assert await writer.append(0, b"x") == 0
            assert (await again, await held_back) == (1, 2)
            assert await writer.close() == 2
            reader = await client.open(writer.ledger_id)
            assert (await reader.read(1, 1))[0].payload == b"kept"

    run(main())


def test_an_append_that_is_cancelled_in_the_queue_makes_way_for_the_next() -> None:
    async def main() -> None:
        async with (
            fake_cluster() as cluster,
            cluster.client(replace(QUICK, window_bytes=4096)) as client,
            await client.create_adv() as writer,
        ):
            held_back = writer.append_nowait(3, bytes(2000))
            large = asyncio.ensure_future(writer.append(2, bytes(3000)))
            small = asyncio.ensure_future(writer.append(1, b"small"))
            assert await is_pending(held_back, large, small)
            assert not cluster.holders(writer.ledger_id, 1)
            large.cancel()
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 1)) == 3)
            appended = [writer.append_nowait(entry_id, b"x") for entry_id in (0, 2)]
            assert [await future for future in (*appended, held_back, small)] == [0, 2, 3, 1]

    run(main())


def test_a_slow_bookie_bounds_what_is_on_the_way_to_it() -> None:
    async def main() -> None:
        settings = replace(QUICK, channel_window_entries=4, add_timeout_s=10.0)
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create_adv()
            slow = writer.metadata.last_segment.ensemble[2]
            cluster[slow].when(AddRequest, "hold")
            for entry_id in (3, 2, 1):
                writer.append_nowait(entry_id, b"x")
                await eventually(lambda entry_id=entry_id: len(cluster.holders(writer.ledger_id, entry_id)) == 2)  # type: ignore[misc]
            assert await writer.append(0, b"x") == 0
            waiting = [asyncio.ensure_future(writer.append(entry_id, b"x")) for entry_id in (6, 5)]
            assert await is_pending(*waiting), "two bookies would be enough, but the third owes four answers"
            assert writer.last_add_pushed == 3
            cluster[slow].obey()
            await eventually(lambda: writer.last_add_pushed == 6)
            assert await writer.append(4, b"x") == 4
            assert [await task for task in waiting] == [6, 5]

    run(main())


@WIRES
def test_a_dead_bookie_is_replaced_while_a_gap_is_open(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(replace(QUICK, wire=wire)) as client:
            writer = await client.create_adv()
            await writer.append(0, b"0")
            ensemble = writer.metadata.last_segment.ensemble
            held_back = [writer.append_nowait(entry_id, f"{entry_id}".encode()) for entry_id in (4, 2)]
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 2)) == 3)
            await cluster[ensemble[0]].stop()
            spare = next(name for name in "abcd" if name not in ensemble)
            third = writer.append_nowait(3, b"3")
            await eventually(lambda: writer.ensemble_changes == 1)
            assert writer.metadata.last_segment.first_entry_id == 1
            await eventually(lambda: all(spare in cluster.holders(writer.ledger_id, entry_id) for entry_id in (2, 3, 4)))
            assert await is_pending(*held_back, third)
            assert await writer.append(1, b"1") == 1
            assert [await future for future in (*held_back, third)] == [4, 2, 3]
            assert await writer.close() == 4
            reader = await client.open(writer.ledger_id)
            assert [entry.payload for entry in await reader.read(0, 4)] == [b"0", b"1", b"2", b"3", b"4"]

    run(main())


def test_striped_entries_go_to_their_write_sets() -> None:
    async def main() -> None:
        shape = {"ensemble_size": 4, "write_quorum": 2, "ack_quorum": 2}
        async with fake_cluster("abcd") as cluster, cluster.client() as client, await client.create_adv(**shape) as writer:  # type: ignore[arg-type]
            order = list(range(0, 40, 2)) + list(range(39, 0, -2))
            futures = [writer.append_nowait(entry_id, b"x") for entry_id in order]
            assert [await future for future in futures] == order
            ensemble = writer.metadata.last_segment.ensemble
            for entry_id in order:
                assert set(cluster.holders(writer.ledger_id, entry_id)) == {ensemble[entry_id % 4], ensemble[(entry_id + 1) % 4]}

    run(main())


def test_closing_with_a_gap_leaves_out_what_lies_behind_it() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, window_entries=3)) as client:
            writer = await client.create_adv()
            await writer.append(0, b"four")
            last = writer.append_nowait(1, b"too")
            behind = writer.append_nowait(3, b"behind")
            waiting = asyncio.ensure_future(writer.append(9, b"w"))
            later = asyncio.ensure_future(writer.append(10, b"w"))
            await asyncio.sleep(0)
            assert await writer.close() == 1
            assert await last == 1
            with pytest.raises(LedgerClosed, match=r"entry 2 was not appended.*not part of the ledger"):
                await behind
            for task in (waiting, later):
                with pytest.raises(LedgerClosed):
                    await task
            with pytest.raises(HandleClosed):
                await writer.append(2, b"late")
            metadata = await cluster.metadata_of(writer.ledger_id)
            assert (metadata.state, metadata.last_entry_id, metadata.length) == (LedgerState.CLOSED, 1, 7)

    run(main())


def test_a_ledger_that_only_has_entries_behind_a_gap_is_closed_empty() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create_adv()
            future = writer.append_nowait(1, b"x")
            assert await writer.close() == -1
            with pytest.raises(LedgerClosed, match="entry 0 was not appended"):
                await future

    run(main())


@WIRES
def test_recovery_fences_the_writer_and_ends_the_ledger_at_the_first_gap(wire: str) -> None:
    async def main() -> None:
        settings = replace(QUICK, wire=wire)
        async with fake_cluster() as cluster, cluster.client(settings) as client, cluster.client(settings) as other:
            writer = await client.create_adv()
            confirmed = [writer.append_nowait(entry_id, b"x") for entry_id in (1, 0)]
            behind = writer.append_nowait(3, b"behind")
            assert [await future for future in confirmed] == [1, 0]
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 3)) == 3)
            reader = await other.recover(writer.ledger_id)
            assert reader.last_add_confirmed == 1
            with pytest.raises(LedgerFenced):
                await writer.append(2, b"2")
            with pytest.raises(LedgerFenced, match="unknown outcome"):
                await behind

    run(main())


def test_a_writer_without_enough_bookies_fails_all_its_waiters() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, window_entries=2)) as client:
            writer: AdvLedgerWriter = await client.create_adv()
            futures = [writer.append_nowait(entry_id, b"x") for entry_id in (2, 1)]
            waiting = asyncio.ensure_future(writer.append(3, b"x"))
            await asyncio.sleep(0)
            for position in (0, 1):
                cluster[writer.metadata.last_segment.ensemble[position]].when(AddRequest, Status.IO_ERROR)
            for future in futures:
                with pytest.raises(NotEnoughBookies, match="unknown outcome"):
                    await future
            with pytest.raises(NotEnoughBookies, match="nothing of this append was sent"):
                await waiting

    run(main())


def test_copies_carry_the_entry_under_its_id() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, await client.create_adv(password=b"p") as writer:
            futures = [writer.append_nowait(entry_id, f"{entry_id}".encode()) for entry_id in (1, 0)]
            for future in futures:
                await future
            codec = EntryCodec(writer.ledger_id, writer.metadata.digest_type, b"p")
            for entry_id in (0, 1):
                body = cluster["b"].ledgers[writer.ledger_id].entries[entry_id]
                assert codec.decode(body, entry_id).payload == f"{entry_id}".encode()

    run(main())
