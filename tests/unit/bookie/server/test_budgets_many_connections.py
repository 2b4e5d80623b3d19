"""Many connections wait for the same memory, and a full disk lasts: everybody goes on who can."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterator

import pytest

from tests.unit.bookie.bookie_rig import RawClient, Rig, run_rig
from triplicate.bookie.server.budgets import FrameBudget, Receiving
from triplicate.bookie.storage.storage import Storage
from triplicate.ledger import DigestType, EntryCodec
from triplicate.sim import World
from triplicate.wire import AddRequest, ReadRequest, Status, encode_request
from triplicate_simulator.cluster.simulated_cluster import LEDGER_DIRECTORY

KIB = 1024


def codec(ledger_id: int = 5) -> EntryCodec:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"")


def add_frame(entry_id: int, size: int) -> bytes:
    return encode_request(AddRequest(5, entry_id, codec().master_key, codec().encode(entry_id, -1, 1, b"x" * size)))


def test_a_thousand_connections_that_wait_for_one_frame_all_go_on_when_it_is_there() -> None:
    async def body(rig: Rig) -> None:
        first = await rig.connect()
        large = add_frame(0, 190 * KIB)
        first.send_bytes(large[:KIB])
        await asyncio.sleep(0.1)
        waiting: list[RawClient] = []
        for number in range(1, 1001):
            client = await rig.connect()
            client.send_bytes(add_frame(number, 10)[:20])
            waiting.append(client)
        await asyncio.sleep(0.1)
        assert rig.bookie.connections.frames.waiting > 900
        # Whoever goes on ends a frame, makes room in turn and has begun the next one.
        for number, client in enumerate(waiting, 1):
            client.send_bytes(add_frame(number, 10)[20:] + add_frame(2000 + number, 10)[:30])
        await asyncio.sleep(0.1)
        first.send_bytes(large[KIB:])
        assert (await first.answer()).status is Status.OK
        for number, client in enumerate(waiting, 1):
            assert (await client.answer()).status is Status.OK
            client.send_bytes(add_frame(2000 + number, 10)[30:])
        assert {(await client.answer()).status for client in waiting} == {Status.OK}
        frames = rig.bookie.connections.frames
        assert (frames.waiting, frames.held_bytes, frames.reserved_bytes) == (0, 0, 0)
        assert all(each.is_read for each in rig.bookie.connections)

    run_rig(body, unfinished_frames_bytes=191 * KIB, write_cache_bytes=4 << 20, verify_on_write="off", connections=2000)


class Peer:
    """A connection that has all of its frame and ends it as soon as it may go on."""

    frame_held = 0
    frame_reserved = 0
    frame_since = 0.0
    is_read = True

    def __init__(self, budget: list[FrameBudget]) -> None:
        self._budget = budget
        self.held = False

    def pause_frames(self) -> None:
        self.held = True

    def resume_frames(self) -> None:
        self.held = False
        self._budget[0].record(self, 0, 0)

    def drop(self, reason: str) -> None: ...


class Counted(dict[int, Receiving]):
    walks = 0

    def __iter__(self) -> Iterator[int]:
        self.walks += 1
        return super().__iter__()

    def values(self) -> object:  # type: ignore[override]
        self.walks += 1
        return super().values()


def test_a_thousand_that_wait_are_let_on_one_after_the_other_and_none_is_forgotten() -> None:
    world = World(1)
    try:
        made: list[FrameBudget] = []
        peers = [Peer(made) for _ in range(1001)]
        made.append(FrameBudget(world.start_host("alone").port.clock, 100, {id(peer): peer for peer in peers}))
        budget = made[0]
        budget.record(peers[0], 90, 100)
        for peer in peers[1:]:
            budget.record(peer, 1, 60)
        assert budget.waiting == 1000
        budget.record(peers[0], 0, 0)
        assert (budget.waiting, budget.held_bytes, budget.reserved_bytes) == (0, 0, 0)
        assert not any(peer.held for peer in peers)
    finally:
        world.close()


def test_connections_are_walked_once_when_the_bound_is_passed_and_all_are_held_until_there_is_room() -> None:
    world = World(1)
    try:
        made: list[FrameBudget] = []
        idle = [Peer(made) for _ in range(10)]
        first, second, late = Peer(made), Peer(made), Peer(made)
        everybody = Counted({id(peer): peer for peer in [first, second, *idle]})
        budget = FrameBudget(world.start_host("alone").port.clock, 100, everybody)
        made.append(budget)
        budget.record(first, 10, 500)
        for held in range(101, 301):
            budget.record(first, held, 500)
        assert everybody.walks == 1
        assert all(peer.held for peer in idle)
        everybody[id(late)] = late
        budget.join(late)
        assert late.held
        budget.record(first, 0, 0)
        assert not any(peer.held for peer in [first, second, late, *idle])
        budget.record(second, 10, 500)
        budget.record(second, 200, 500)
        assert everybody.walks == 2, "the bound is passed again"
        assert all(peer.held for peer in [first, late, *idle])
    finally:
        world.close()


async def fill_cache(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> RawClient:
    """Let a flush take so long that the cache is full before it finds no space; return the connection that has brought so much."""
    writer = rig.bookie.storage.workers.writer
    run = writer.run

    async def run_late(function: Callable[..., object], *args: object) -> object:
        await asyncio.sleep(1)
        return await run(function, *args)

    def no_space(kind: str, path: str) -> None:
        if kind == "write" and path.startswith(LEDGER_DIRECTORY):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    rig.disk.before_operation = no_space
    monkeypatch.setattr(writer, "run", run_late)
    client = await rig.connect()
    for entry_id in range(100):
        client.send_bytes(add_frame(entry_id, 2 * KIB))
        await asyncio.sleep(0.002)
    async with asyncio.timeout(20):
        while not (rig.bookie.read_only and rig.bookie.storage.crowded):
            await asyncio.sleep(0.01)
    await asyncio.sleep(2)
    return client


def test_reads_and_fences_go_on_while_the_cache_is_full_and_no_flush_finds_space(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(rig: Rig) -> None:
        writer = await fill_cache(rig, monkeypatch)
        assert rig.bookie.storage.crowded
        reader = await rig.connect()
        for _ in range(3):
            assert (await reader.read(5, 0)).status is Status.OK
            assert (await reader.fence(codec(5), 0)).status is Status.OK
        statuses = [(await writer.answer()).status for _ in range(100)]
        assert set(statuses) == {Status.OK, Status.READ_ONLY}, "every add is answered"
        for _ in range(3):
            assert await writer.add(codec(), 100) is Status.READ_ONLY
            assert (await writer.read(5, 0)).status is Status.OK
            assert (await writer.fence(codec(6))).status in (Status.NO_ENTRY, Status.NO_LEDGER)
        assert rig.bookie.storage.crowded, "the disk is full all the while"
        rig.disk.before_operation = None
        async with asyncio.timeout(20):
            while rig.bookie.read_only:
                await asyncio.sleep(0.05)
        assert await writer.add(codec(7), 0) is Status.OK

    run_rig(body, verify_on_write="off", disk_check_interval_s=0.3)


@pytest.mark.parametrize("version", [2, 3])
def test_what_adds_bytes_waits_while_storage_is_crowded_and_nothing_else_does(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(rig: Rig) -> None:
        assert await (await rig.connect()).add(codec(), 0) is Status.OK
        with monkeypatch.context() as patched:
            patched.setattr(Storage, "crowded", True)
            client = await rig.connect() if version == 2 else await rig.connect_v3()
            for _ in range(3):
                assert (await client.read(5, 0)).status is Status.OK
                assert (await client.fence(codec(6))).status in (Status.NO_ENTRY, Status.NO_LEDGER)
            assert await client.add(codec(), 1) is Status.OK
            client.send(AddRequest(5, 2, codec().master_key, codec().encode(2, -1, 1, b"x")))
            await asyncio.sleep(1)
            assert client.answers.empty()
            other = await rig.connect_v3()
            assert await other.write_lac(codec(), 0) is Status.OK
            assert len(rig.bookie.storage._room) == 2
        rig.bookie.storage.wake_waiters()
        assert (await client.answer()).status is Status.OK

    run_rig(body, flush_interval_s=3600.0, verify_on_write="off")


def test_connections_that_have_gone_wait_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Storage, "crowded", True)

    async def body(rig: Rig) -> None:
        for entry_id in range(20):
            client = await rig.connect()
            assert await client.add(codec(), entry_id) is Status.OK
            for connection in rig.bookie.connections:
                connection.drop("the test ends it")
            await client.until_closed()
        assert len(rig.bookie.storage._room) == 0

    run_rig(body, flush_interval_s=3600.0)


def test_fences_wait_for_a_journal_that_is_far_behind() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        journal = rig.bookie.storage.journals[0]
        behind = 2 * rig.bookie.settings.journal_queue_bytes
        journal.commit.waiting_bytes += behind
        assert (await client.fence(codec(5))).status in (Status.NO_ENTRY, Status.NO_LEDGER)
        client.send(ReadRequest(6, -1, fence=True, master_key=codec(6).master_key))
        await asyncio.sleep(1)
        assert client.answers.empty()
        assert rig.bookie.storage.ledgers.get(6) is None, "nothing was taken"
        journal.commit.waiting_bytes -= behind
        assert (await client.answer()).status in (Status.NO_ENTRY, Status.NO_LEDGER)

    run_rig(body)
