"""The memory that a bookie holds for clients is bounded, per connection and in total, and clients that go on are served."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.bookie.bookie_rig import RawClient, Rig, run_rig
from tests.unit.bookie.crash_rig import codec
from triplicate.wire import AddRequest, ReadRequest, Status, encode_request

KIB = 1024


def large_add(entry_id: int, size: int = 50 * KIB) -> bytes:
    return encode_request(AddRequest(5, entry_id, codec().master_key, codec().encode(entry_id, -1, 1, b"x" * size)))


def frames_held(rig: Rig) -> int:
    return sum(each.frame_held for each in rig.bookie.connections)


def answers_waiting(rig: Rig) -> int:
    return sum(each.answers_waiting_bytes for each in rig.bookie.connections)


async def status_of(client: RawClient) -> Status:
    return (await client.answer()).status


def test_unfinished_frames_of_all_connections_have_one_bound_and_all_are_served_in_the_end() -> None:
    async def body(rig: Rig) -> None:
        clients = [await rig.connect() for _ in range(40)]
        most = 0
        for start, end in ((0, 10 * KIB), (10 * KIB, 20 * KIB), (20 * KIB, None)):
            for number, client in enumerate(clients):
                client.send_bytes(large_add(number)[start:end])
                most = max(most, frames_held(rig))
            await asyncio.sleep(0.2)
            most = max(most, frames_held(rig))
        assert [await status_of(client) for client in clients] == [Status.OK] * 40
        assert most <= 2 * 100 * KIB + 20 * KIB
        assert rig.bookie.connections.frames.held_bytes == rig.bookie.connections.frames.reserved_bytes == 0
        assert not rig.bookie.connections.frames.waiting

    run_rig(body, unfinished_frames_bytes=100 * KIB, write_cache_bytes=4 << 20, verify_on_write="off")


def test_a_peer_that_stops_in_a_frame_keeps_nobody_waiting_for_long() -> None:
    async def body(rig: Rig) -> None:
        stopped = [await rig.connect() for _ in range(2)]
        for number, client in enumerate(stopped):
            client.send_bytes(large_add(number)[: 20 * KIB])
        await asyncio.sleep(30)
        assert not any(client.closed for client in stopped), "it may, while nobody waits for its room"
        good = await rig.connect()
        frame = large_add(7)
        good.send_bytes(frame[: 20 * KIB])
        await asyncio.sleep(0.1)
        good.send_bytes(frame[20 * KIB :])
        assert await status_of(good) is Status.OK
        assert any(client.closed for client in stopped)
        assert rig.facts("bookie.connection_dropped")

    run_rig(body, unfinished_frames_bytes=110 * KIB, verify_on_write="off")


def test_one_frame_is_received_however_small_the_bound() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        frame = large_add(0, 200 * KIB)
        client.send_bytes(frame[: 30 * KIB])
        await asyncio.sleep(0.1)
        client.send_bytes(frame[30 * KIB :])
        assert await status_of(client) is Status.OK

    run_rig(body, unfinished_frames_bytes=128 * KIB, verify_on_write="off", write_cache_bytes=4 << 20)


async def store(rig: Rig, entries: int, size: int) -> None:
    client = await rig.connect()
    for entry_id in range(entries):
        assert await client.add(codec(), entry_id, b"x" * size) is Status.OK
    while rig.bookie.storage.cache.active or rig.bookie.storage.cache.frozen:
        await asyncio.sleep(0.05)


def test_reads_outstanding_of_all_connections_have_one_bound_and_all_are_answered() -> None:
    async def body(rig: Rig) -> None:
        await store(rig, 20, 1000)
        clients = [await rig.connect() for _ in range(10)]
        reads = rig.bookie.connections
        most = 0
        for client in clients:
            client.send(*[ReadRequest(5, entry_id) for entry_id in range(20)] * 5)
        for _ in range(400):
            await asyncio.sleep(0.0005)
            most = max(most, sum(len(each.reads) for each in reads))
        for client in clients:
            assert [await status_of(client) for _ in range(100)] == [Status.OK] * 100
        assert most <= 30 + len(clients), "one of each connection goes beyond, so that everybody goes on"

    run_rig(body, reads_outstanding_total=30, verify_on_write="off")


def test_answers_of_all_connections_have_one_bound() -> None:
    async def body(rig: Rig) -> None:
        await store(rig, 30, 20_000)
        clients = [await rig.connect() for _ in range(16)]
        for client in clients:
            assert client.transport is not None
            client.transport.pause_reading()
            client.send(*[ReadRequest(5, entry_id) for entry_id in range(30)] * 3)
        most = 0
        for _ in range(300):
            await asyncio.sleep(0.01)
            most = max(most, answers_waiting(rig))
        assert most <= 512 * KIB + 17 * (16 * KIB + 20_100), "each passes its share by the answers of one portion at most"
        for client in clients:
            assert client.transport is not None
            client.transport.resume_reading()
        for client in clients:
            assert [await status_of(client) for _ in range(90)] == [Status.OK] * 90

    run_rig(body, answers_waiting_bytes=512 * KIB, read_turn_bytes=16 * KIB, verify_on_write="off")


def test_more_connections_than_may_be_are_closed_at_once() -> None:
    async def body(rig: Rig) -> None:
        clients = [await rig.connect() for _ in range(3)]
        last = await rig.connect()
        await last.until_closed()
        assert not any(client.closed for client in clients)
        assert clients[0].transport is not None
        clients[0].transport.close()
        await asyncio.sleep(0.5)
        assert await (await rig.connect()).add(codec(), 0) is Status.OK

    run_rig(body, connections=3)


@pytest.mark.parametrize("held", [True, False])
def test_a_connection_that_goes_gives_its_room_back(held: bool) -> None:
    async def body(rig: Rig) -> None:
        first, second = await rig.connect(), await rig.connect()
        first.send_bytes(large_add(0)[: 20 * KIB])
        await asyncio.sleep(0.1)
        second.send_bytes(large_add(1)[: 20 * KIB])
        await asyncio.sleep(0.1)
        going = second if held else first
        assert going.transport is not None
        going.transport.abort()
        await asyncio.sleep(0.5)
        frames = rig.bookie.connections.frames
        assert (frames.waiting, len(frames._of)) == (0, 1)
        assert frames.held_bytes == frames_held(rig) > 0

    run_rig(body, unfinished_frames_bytes=64 * KIB)
