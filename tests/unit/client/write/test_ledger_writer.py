"""Appending: order, window, replicas, closing."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, fake_cluster, run
from tests.waiting import eventually
from triplicate.errors import ArgumentError, HandleClosed, LedgerClosed, LedgerExists, NotEnoughBookies, RecordTooLarge, WindowFull
from triplicate.ledger import DigestType, EntryCodec, LedgerState
from triplicate.wire import AddRequest, Status


def test_appends_are_numbered_confirmed_and_stored_on_all_replicas() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, await client.create() as writer:
            assert [await writer.append(f"entry {i}".encode()) for i in range(5)] == [0, 1, 2, 3, 4]
            assert (writer.last_add_confirmed, writer.last_add_pushed, writer.length) == (4, 4, 35)
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 4)) == 3)
            for entry_id in range(5):
                copies = {cluster[name].ledgers[writer.ledger_id].entries[entry_id] for name in "abc"}
                assert len(copies) == 1, "the same bytes go to every replica"
                entry = EntryCodec(writer.ledger_id, DigestType.CRC32C, b"").decode(copies.pop(), entry_id)
                assert entry.payload == f"entry {entry_id}".encode()
                assert (entry.last_add_confirmed, entry.length) == (entry_id - 1, 7 * (entry_id + 1))

    run(main())


def test_striped_entries_go_to_their_write_sets() -> None:
    async def main() -> None:
        async with (
            fake_cluster("abcde") as cluster,
            cluster.client() as client,
            await client.create(ensemble_size=5, write_quorum=2, ack_quorum=2) as writer,
        ):
            assert await writer.append_many([b"x"] * 50) == range(50)
            ensemble = writer.metadata.last_segment.ensemble
            for entry_id in range(50):
                assert set(cluster.holders(writer.ledger_id, entry_id)) == {ensemble[entry_id % 5], ensemble[(entry_id + 1) % 5]}

    run(main())


@pytest.mark.parametrize("digest_type", list(DigestType))
def test_every_digest_type_can_be_written_and_read(digest_type: DigestType) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            async with await client.create(digest_type=digest_type, password=b"secret") as writer:
                await writer.append_many([b"one", b"", b"three"])
            reader = await client.open(writer.ledger_id, password=b"secret")
            assert [entry.payload for entry in await reader.read(0, 2)] == [b"one", b"", b"three"]

    run(main())


def test_confirmation_is_in_order() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, add_timeout_s=10.0)) as client:
            writer = await client.create()
            for name in "ab":
                cluster[name].when(AddRequest, "hold", entry_id=0)
            first, second = writer.append_nowait(b"first"), writer.append_nowait(b"second")
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 1)) == 3)
            await asyncio.sleep(0.02)
            assert not second.done()
            assert writer.last_add_confirmed == -1
            cluster["a"].obey()
            assert await second == 1
            assert first.result() == 0

    run(main())


def test_append_nowait_is_refused_when_the_window_is_full() -> None:
    async def main() -> None:
        settings = replace(QUICK, window_entries=3, add_timeout_s=10.0)
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            for name in "abc":
                cluster[name].when(AddRequest, "hold")
            pending = [writer.append_nowait(b"x") for _ in range(3)]
            with pytest.raises(WindowFull):
                writer.append_nowait(b"x")
            with pytest.raises(WindowFull):
                writer.append_many_nowait([b"x"])
            await eventually(lambda: all(len(cluster[name].held) == 3 for name in "abc"))
            for name in "abc":
                cluster[name].obey()
            assert [await future for future in pending] == [0, 1, 2]
            assert await writer.append_nowait(b"x") == 3

    run(main())


def test_the_window_is_bounded_by_bytes_too() -> None:
    async def main() -> None:
        settings = replace(QUICK, window_bytes=4096, add_timeout_s=10.0)
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            big = writer.append_nowait(bytes(100_000))
            with pytest.raises(WindowFull):
                writer.append_nowait(b"x")
            assert await big == 0, "a record larger than the window goes alone"
            assert await writer.append_many_nowait([bytes(1000)] * 3) == range(1, 4)
            with pytest.raises(ArgumentError, match="exceed the window"):
                writer.append_many_nowait([bytes(1000)] * 6_000)
            assert await writer.append_many([bytes(1000)] * 30) == range(4, 34)

    run(main())


def test_an_append_that_is_cancelled_in_the_queue_makes_way_for_the_next() -> None:
    async def main() -> None:
        settings = replace(QUICK, window_bytes=4096, add_timeout_s=10.0)
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            for name in "abc":
                cluster[name].when(AddRequest, "hold")
            first = asyncio.ensure_future(writer.append(bytes(2000)))
            large = asyncio.ensure_future(writer.append(bytes(3000)))
            small = asyncio.ensure_future(writer.append(b"small"))
            await eventually(lambda: len(cluster["a"].held) == 1)
            assert writer.last_add_pushed == 0
            large.cancel()
            await eventually(lambda: len(cluster["a"].held) == 2)
            for name in "abc":
                cluster[name].obey()
            assert (await first, await small) == (0, 1)

    run(main())


def test_appends_wait_first_come_first_served() -> None:
    async def main() -> None:
        settings = replace(QUICK, window_entries=2, add_timeout_s=10.0)
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            for name in "abc":
                cluster[name].when(AddRequest, "hold")
            waiting = [asyncio.ensure_future(writer.append(f"{i}".encode())) for i in range(8)]
            await eventually(lambda: len(cluster["a"].held) == 2)
            assert writer.last_add_pushed == 1, "only what fits is numbered"
            with pytest.raises(WindowFull):
                writer.append_nowait(b"jumps the queue")
            for name in "abc":
                cluster[name].obey()
            assert [await task for task in waiting] == list(range(8))

    run(main())


def test_append_many_keeps_its_ids_together() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, window_entries=4)) as client, await client.create() as writer:
            batches = [asyncio.ensure_future(writer.append_many([b"m"] * 25)) for _ in range(3)]
            singles = [asyncio.ensure_future(writer.append(b"s")) for _ in range(3)]
            assert [await batch for batch in batches] == [range(25), range(25, 50), range(50, 75)]
            assert [await single for single in singles] == [75, 76, 77]
            assert await writer.append_many([]) == range(78, 78)

    run(main())


def test_cancelling_does_not_take_back_a_numbered_entry() -> None:
    async def main() -> None:
        settings = replace(QUICK, window_entries=1, add_timeout_s=10.0)
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            for name in "abc":
                cluster[name].when(AddRequest, "hold")
            numbered, waiting, last = (asyncio.ensure_future(writer.append(name)) for name in (b"numbered", b"waiting", b"last"))
            await eventually(lambda: len(cluster["a"].held) == 1)
            numbered.cancel()
            waiting.cancel()
            await asyncio.sleep(0)
            for name in "abc":
                cluster[name].obey()
            assert await last == 1, "what only waited has no number"
            reader = await client.open(writer.ledger_id)
            assert (await reader.read(0, 0))[0].payload == b"numbered"

    run(main())


def test_a_record_over_the_limit_is_refused_before_anything_is_sent() -> None:
    async def main() -> None:
        settings = replace(QUICK, frame_limit_bytes=8192)
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            with pytest.raises(RecordTooLarge, match="nothing was written"):
                await writer.append(bytes(8192))
            with pytest.raises(RecordTooLarge):
                await writer.append_many([b"small", bytes(8192)])
            assert writer.last_add_pushed == -1
            assert await writer.append(bytes(writer.largest_payload_bytes)) == 0
            assert [request for request in cluster["a"].seen if not isinstance(request, AddRequest)] == []

    run(main())


def test_a_payload_that_is_not_bytes_is_refused() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, await client.create() as writer:
            with pytest.raises(ArgumentError, match="not int"):
                await writer.append(5)  # type: ignore[arg-type]
            assert await writer.append(bytearray(b"ok")) == 0
            assert await writer.append(memoryview(b"ok")) == 1

    run(main())


def test_close_waits_for_what_is_under_way() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, add_timeout_s=10.0)) as client:
            writer = await client.create()
            for name in "abc":
                cluster[name].when(AddRequest, "hold")
            future = writer.append_nowait(b"four")
            closing = asyncio.ensure_future(writer.close())
            await eventually(lambda: len(cluster["a"].held) == 1)
            with pytest.raises(HandleClosed):
                await writer.append(b"too late")
            for name in "abc":
                cluster[name].obey()
            assert await closing == 0
            assert future.result() == 0
            assert await writer.close() == 0, "closing twice is one closing"
            metadata = await cluster.metadata_of(writer.ledger_id)
            assert (metadata.state, metadata.last_entry_id, metadata.length) == (LedgerState.CLOSED, 0, 4)

    run(main())


def test_close_without_waiting_leaves_out_what_is_not_confirmed() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, add_timeout_s=10.0)) as client:
            writer = await client.create()
            await writer.append(b"kept")
            for name in "abc":
                cluster[name].when(AddRequest, "hold")
            future = writer.append_nowait(b"not confirmed")
            assert await writer.close(wait=False) == 0
            with pytest.raises(LedgerClosed):
                await future
            metadata = await cluster.metadata_of(writer.ledger_id)
            assert (metadata.last_entry_id, metadata.length) == (0, 4)

    run(main())


def test_an_empty_ledger_can_be_closed() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            assert await writer.close() == -1
            reader = await client.open(writer.ledger_id)
            assert (reader.is_closed, reader.last_add_confirmed, reader.length) == (True, -1, 0)

    run(main())


def test_an_error_in_the_block_closes_the_ledger_at_what_was_confirmed() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()

            async def fail_inside() -> None:
                async with writer:
                    await writer.append(b"x")
                    raise RuntimeError("mine")

            with pytest.raises(RuntimeError, match="mine"):
                await fail_inside()
            assert (await cluster.metadata_of(writer.ledger_id)).last_entry_id == 0

    run(main())


def test_closing_the_client_leaves_ledgers_to_recovery() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster:
            async with cluster.client() as client:
                writer = await client.create()
                await writer.append(b"x")
                for name in "abc":
                    cluster[name].when(AddRequest, "drop")
                future = writer.append_nowait(b"y")
            with pytest.raises(HandleClosed, match="unknown outcome"):
                await future
            assert (await cluster.metadata_of(writer.ledger_id)).state == LedgerState.OPEN

    run(main())


def test_the_metadata_of_a_new_ledger_says_whose_it_is() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create(custom={"component": b"log", "log": b"flights"}, password=b"pw", ledger_id=77)
            metadata = await client.metadata_of(77)
            assert writer.ledger_id == 77
            assert {key: metadata.custom[key] for key in ("application", "component", "log")} == {
                "application": b"triplicate",
                "component": b"log",
                "log": b"flights",
            }
            assert abs(int(metadata.custom["created"]) - cluster.host.clock.wall_us() // 1000) < 60_000
            assert (metadata.password, metadata.digest_type, metadata.state) == (b"pw", DigestType.CRC32C, LedgerState.OPEN)
            with pytest.raises(LedgerExists):
                await client.create(ledger_id=77)
            assert [ledger_id async for ledger_id in client.ledger_ids()] == [77]
            await client.delete(77)
            await client.delete(77)
            assert [ledger_id async for ledger_id in client.ledger_ids()] == []

    run(main())


def test_too_few_bookies_are_named() -> None:
    async def main() -> None:
        async with fake_cluster("ab") as cluster, cluster.client() as client:
            with pytest.raises(NotEnoughBookies, match=r"needs 3 writable bookies, there are 2 \(a, b\)"):
                await client.create()

    run(main())


@pytest.mark.parametrize(
    ("sizes", "named"), [((3, 4, 2), "write_quorum"), ((3, 3, 4), "ack_quorum"), ((0, 0, 0), "ensemble_size"), ((3, 3, 0), "ack_quorum")]
)
def test_impossible_sizes_are_refused_by_name(sizes: tuple[int, int, int], named: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            with pytest.raises(ArgumentError, match=named):
                await client.create(ensemble_size=sizes[0], write_quorum=sizes[1], ack_quorum=sizes[2])

    run(main())


def test_a_slow_bookie_bounds_what_is_on_the_way_to_it() -> None:
    async def main() -> None:
        settings = replace(QUICK, channel_window_entries=10, add_timeout_s=10.0)
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            slow = writer.metadata.last_segment.ensemble[2]
            cluster[slow].when(AddRequest, "hold")
            for _ in range(10):
                await writer.append(b"x")
            waiting = asyncio.ensure_future(writer.append(b"x"))
            await asyncio.sleep(0.05)
            assert not waiting.done(), "two bookies would be enough, but the third owes ten answers"
            cluster[slow].obey()
            assert await waiting == 10
            assert writer.ensemble_changes == 0

    run(main())


def test_refusals_are_statuses_of_one_bookie() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client, await client.create() as writer:
            refusing = writer.metadata.last_segment.ensemble[0]
            cluster[refusing].when(AddRequest, Status.READ_ONLY)
            assert await writer.append(b"x") == 0
            await eventually(lambda: writer.ensemble_changes == 1)
            assert refusing not in writer.metadata.last_segment.ensemble

    run(main())
