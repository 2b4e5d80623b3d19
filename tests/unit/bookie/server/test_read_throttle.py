"""Catch-up reads have a share of the time beside adds, and all of it without adds; no other request waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.unit.bookie.bookie_rig import RawClient, Rig, run_rig
from triplicate.bookie.server import read_throttle
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import AddRequest, AddResponse, BatchReadRequest, BatchReadResponse, ReadLacRequest, ReadRequest, ReadResponse, Status

OLD, NEW, OTHER = 5, 6, 7
ENTRIES = 200
SHARE = 0.05
ADD_EVERY_S = 0.01


def codec(ledger_id: int) -> EntryCodec:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"")


async def write_old(rig: Rig, ledger_id: int = OLD, size_bytes: int = 100) -> None:
    """A ledger that is no longer in the write cache, and rest from adds."""
    client = await rig.connect()
    for entry_id in range(ENTRIES):
        assert await client.add(codec(ledger_id), entry_id, b"x" * size_bytes) is Status.OK
    await rig.bookie.storage.flush()
    assert not rig.bookie.storage.cache.active
    await asyncio.sleep(2 * read_throttle.ADDS_ARE_RECENT_S)


@asynccontextmanager
async def adds(rig: Rig, every_s: float = ADD_EVERY_S) -> AsyncIterator[RawClient]:
    """Somebody appends steadily meanwhile."""
    client = await rig.connect()

    async def add() -> None:
        entry_id = 0
        while True:
            assert await client.add(codec(NEW), entry_id) is Status.OK
            entry_id += 1
            await asyncio.sleep(every_s)

    adding = rig.client_host.start(add())
    await asyncio.sleep(0.1)
    yield client
    assert not adding.done()
    adding.cancel()


class Spent:
    """The time that portions of reads took."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        self.portions = 0
        spent = read_throttle.ReadThrottle.spent

        def noted(pace: read_throttle.ReadThrottle, began: float) -> None:
            self.seconds += pace._clock.monotonic() - began
            self.portions += 1
            spent(pace, began)

        monkeypatch.setattr(read_throttle.ReadThrottle, "spent", noted)


async def read_for(rig: Rig, seconds: float) -> int:
    """Entries that one reader gets, who asks for several at once."""
    client, count = await rig.connect(), 0
    until = rig.world.loop.time() + seconds
    while rig.world.loop.time() < until:
        client.send(*[ReadRequest(OLD, (count + number) % ENTRIES) for number in range(8)])
        for _ in range(8):
            answer = await client.answer()
            assert isinstance(answer, ReadResponse)
            assert answer.status is Status.OK
            count += 1
    return count


def test_beside_adds_a_reader_has_its_share_of_the_time_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = Spent(monkeypatch)

    async def body(rig: Rig) -> None:
        await write_old(rig)
        async with adds(rig):
            before = spent.seconds
            await read_for(rig, 10.0)
            assert 0.7 * SHARE <= (spent.seconds - before) / 10.0 <= 1.1 * SHARE
        metrics = rig.bookie.parts.metrics
        assert metrics.reads_paced.value > 8 * 100
        assert metrics.read_bytes_paced.value > 100 * metrics.reads_paced.value

    run_rig(body, read_share_beside_writes=SHARE, read_share_beside_rare_writes=SHARE)


def test_reads_beside_rare_adds_have_a_larger_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """In between, the share depends on how often an add waits for its sync."""
    spent = Spent(monkeypatch)

    async def body(rig: Rig) -> None:
        await write_old(rig)
        async with adds(rig, 0.1):
            await read_for(rig, 5.0)
            before = spent.seconds
            await read_for(rig, 10.0)
            assert (spent.seconds - before) / 10.0 > SHARE

    run_rig(body, read_share_beside_writes=SHARE / 5, read_share_beside_rare_writes=0.9)


@pytest.mark.parametrize("share", [SHARE, 1.0])
def test_without_adds_or_limit_a_reader_waits_for_nothing(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = Spent(monkeypatch)

    async def body(rig: Rig) -> None:
        await write_old(rig)
        client = await rig.connect()
        if share == 1.0:
            async with adds(rig):
                await read_for(rig, 2.0)
                slow = rig.bookie.parts.metrics.reads_paced.value
        else:
            started, before = rig.world.loop.time(), spent.seconds
            for entry_id in range(ENTRIES):
                assert (await client.read(OLD, entry_id)).status is Status.OK
            # The rest is the time on the network.
            assert rig.world.loop.time() - started - (spent.seconds - before) < ENTRIES * 0.008
            slow = rig.bookie.parts.metrics.reads_paced.value
        assert slow == 0

    run_rig(body, read_share_beside_writes=share)


def test_a_reader_goes_on_however_small_its_share_is() -> None:
    async def body(rig: Rig) -> None:
        await write_old(rig)
        async with adds(rig):
            client = await rig.connect()
            started = rig.world.loop.time()
            for entry_id in range(100):
                assert (await client.read(OLD, entry_id)).status is Status.OK
            # One portion each time.
            assert 5.0 < rig.world.loop.time() - started < 100 * 0.11

    run_rig(body, read_share_beside_writes=0.001, read_share_beside_rare_writes=0.001)


def test_what_just_came_is_read_at_once_while_another_catches_up() -> None:
    async def body(rig: Rig) -> None:
        await write_old(rig)
        async with adds(rig), adds_of_another(rig) as last:
            reading = rig.client_host.start(read_for(rig, 5.0))
            client, slowest = await rig.connect(), 0.0
            while not reading.done():
                entry_id = last[-1]
                started = rig.world.loop.time()
                single = await client.read(OTHER, entry_id)
                batch = await client.batch(OTHER, entry_id - 3, 3)
                slowest = max(slowest, rig.world.loop.time() - started)
                assert single.status is batch.status is Status.OK
                assert len(batch.bodies) == 3
                await asyncio.sleep(0.003)
            assert slowest < 0.06
            assert rig.bookie.parts.metrics.reads_paced.value > 100

    run_rig(body, read_share_beside_writes=0.001, read_share_beside_rare_writes=0.001)


@asynccontextmanager
async def adds_of_another(rig: Rig) -> AsyncIterator[list[int]]:
    """A second writer; the list ends with its newest entry."""
    client, found = await rig.connect(), list(range(4))
    for entry_id in found:
        assert await client.add(codec(OTHER), entry_id) is Status.OK

    async def add() -> None:
        while True:
            assert await client.add(codec(OTHER), found[-1] + 1) is Status.OK
            found.append(found[-1] + 1)

    adding = rig.client_host.start(add())
    yield found
    adding.cancel()


def test_a_recovery_and_reads_of_the_last_entry_do_not_wait_for_catch_up_reads() -> None:
    async def body(rig: Rig) -> None:
        await write_old(rig, OTHER)
        await write_old(rig)
        async with adds(rig):
            reading = [rig.client_host.start(read_for(rig, 5.0)) for _ in range(8)]
            await asyncio.sleep(1.0)
            client, slowest = await rig.connect(), 0.0
            for entry_id in range(30):
                started = rig.world.loop.time()
                fenced = await client.fence(codec(OTHER), entry_id)
                last = await client.read(OLD, -1)
                slowest = max(slowest, rig.world.loop.time() - started)
                assert fenced.status is last.status is Status.OK
            v3 = await rig.connect_v3()
            started = rig.world.loop.time()
            assert (await v3.ask(ReadLacRequest(OLD))).status is Status.OK
            slowest = max(slowest, rig.world.loop.time() - started)
            assert slowest < 0.06
            assert not any(task.done() for task in reading)

    run_rig(body, read_share_beside_writes=0.001, read_share_beside_rare_writes=0.001)


def test_answers_are_smaller_while_adds_arrive() -> None:
    async def body(rig: Rig) -> None:
        await write_old(rig, size_bytes=1000)
        client = await rig.connect()
        assert len((await client.batch(OLD, 0)).bodies) == ENTRIES
        async with adds(rig):
            got: list[bytes] = []
            while len(got) < ENTRIES:
                answer = await client.ask(BatchReadRequest(OLD, len(got), 7, 0, 1 << 20))
                assert isinstance(answer, BatchReadResponse)
                assert 1 <= len(answer.bodies) <= 64 * 1024 // read_throttle.BATCHES_BESIDE_WRITES // 1000
                got += answer.bodies
        assert [codec(OLD).decode(body, entry_id).payload for entry_id, body in enumerate(got)] == [b"x" * 1000] * ENTRIES

    run_rig(body, read_turn_bytes=64 * 1024)


def test_an_add_behind_reads_of_the_same_connection_does_not_wait_for_them() -> None:
    async def body(rig: Rig) -> None:
        await write_old(rig)
        async with adds(rig):
            client = await rig.connect()
            await client.read(OLD, 0)
            await client.read(OLD, 1)
            entry = codec(OTHER).encode(0, -1, 1, b"x")
            started = rig.world.loop.time()
            client.send(*[ReadRequest(OLD, entry_id) for entry_id in range(100)], AddRequest(OTHER, 0, codec(OTHER).master_key, entry))
            before = 0
            while not isinstance(answer := await client.answer(), AddResponse):
                before += 1
            assert answer.status is Status.OK
            assert rig.world.loop.time() - started < read_throttle.PAUSE_MAX_S
            assert before < 100

    run_rig(body, read_share_beside_writes=0.001, read_share_beside_rare_writes=0.001)
