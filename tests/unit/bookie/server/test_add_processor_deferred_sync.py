"""Deferred sync: an add is acknowledged after the write, and durable once a force sent later is acknowledged."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.unit.bookie.bookie_rig import Rig, V3Client, run_rig
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import AddRequest, AddResponse, ForceRequest, ForceResponse, Status

JOURNAL = "/data/journal/current"


def codec(ledger_id: int = 5) -> EntryCodec:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"")


def add(entry_id: int, *, ledger_id: int = 5, deferred_sync: bool = True) -> AddRequest:
    ledger = codec(ledger_id)
    return AddRequest(ledger_id, entry_id, ledger.master_key, ledger.encode(entry_id, -1, 1, b"%d" % entry_id), deferred_sync=deferred_sync)


def test_a_deferred_add_is_acknowledged_before_the_sync_and_a_force_is_not() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        assert await client.add(codec(), 0, deferred_sync=True) is Status.OK
        assert await client.force(5) is Status.OK
        rig.disk.failing_syncs.append(JOURNAL)
        client.send(add(1), ForceRequest(5), add(2, deferred_sync=False))
        await client.until_closed()
        answers = [client.answers.get_nowait() for _ in range(client.answers.qsize())]
        assert AddResponse(Status.OK, 5, 1) in answers
        assert AddResponse(Status.OK, 5, 2) not in answers
        assert ForceResponse(Status.OK, 5) not in answers
        await rig.node.stop()
        await rig.restart()
        client = await rig.connect_v3()
        assert (await client.read(5, 0)).status is Status.OK
        # No client has an acknowledgement that this one is durable.
        assert (await client.read(5, 1)).status is Status.NO_ENTRY

    run_rig(body, flush_interval_s=100.0)


def test_deferred_adds_are_readable_at_once_and_fenced_like_others() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        client.send(add(0), add(1), ForceRequest(5))
        for _ in range(3):
            assert (await client.answer()).status is Status.OK
        assert (await client.read(5, 1)).status is Status.OK
        assert (await client.fence(codec())).status is Status.OK
        assert await client.add(codec(), 2, deferred_sync=True) is Status.FENCED
        assert await client.add(codec(), 2, deferred_sync=True, recovery=True) is Status.OK

    run_rig(body)


def test_each_deferred_add_is_answered_once() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        requests = [add(entry_id, deferred_sync=entry_id % 3 != 0) for entry_id in range(200)]
        for start in range(0, 200, 20):
            client.send(*requests[start : start + 20])
            await asyncio.sleep(0.0003)
        for _ in requests:
            assert (await client.answer()).status is Status.OK
        await asyncio.sleep(1)
        assert client.answers.empty()
        assert sorted(client.answered) == sorted(client.txn_ids)

    run_rig(body)


class Writer:
    """Sends deferred adds and forces until the bookie is gone, and knows what it may rely on."""

    def __init__(self, client: V3Client, entropy: random.Random) -> None:
        self.client = client
        self.entropy = entropy
        self.next_id = 0
        self.forces: dict[int, int] = {}
        """How many entries had been sent when each force was, by its transaction."""
        self.durable = 0
        """Entries below this are covered by an acknowledged force."""

    def step(self) -> None:
        kind = self.entropy.random()
        if kind < 0.8:
            count = self.entropy.randint(1, 10)
            self.client.send(*[add(self.next_id + index) for index in range(count)])
            self.next_id += count
        else:
            self.client.send(ForceRequest(5))
            self.forces[self.client.txn_ids[-1]] = self.next_id

    def take_answers(self) -> None:
        while not self.client.answers.empty():
            answer = self.client.answers.get_nowait()
            assert answer.status is Status.OK, answer
        for txn_id in self.client.answered:
            self.durable = max(self.durable, self.forces.get(txn_id, 0))


@pytest.mark.parametrize("seed", range(12))
def test_a_power_loss_takes_only_what_no_acknowledged_force_covers(seed: int) -> None:
    async def body(rig: Rig) -> None:
        entropy = random.Random(seed)
        kept = -1
        # Slow enough for answers to arrive between write and sync.
        rig.disk.sync_time = lambda: entropy.uniform(0.001, 0.05)
        for _ in range(3):
            client = await rig.connect_v3()
            writer = Writer(client, entropy)
            writer.next_id = kept + 1
            for _ in range(entropy.randint(3, 60)):
                writer.step()
                await asyncio.sleep(entropy.choice((0.0, 0.0001, 0.001, 0.01)))
            writer.take_answers()
            await rig.restart()
            client = await rig.connect_v3()
            for entry_id in range(writer.next_id):
                status = (await client.read(5, entry_id)).status
                if entry_id < max(writer.durable, kept + 1):
                    assert status is Status.OK, (entry_id, writer.durable)
                else:
                    # A journal is a prefix of what was sent: nothing behind the first loss is there.
                    assert status in (Status.OK, Status.NO_ENTRY, Status.NO_LEDGER)
            present = [entry_id for entry_id in range(writer.next_id) if (await client.read(5, entry_id)).status is Status.OK]
            assert present == list(range(len(present)))
            kept = len(present) - 1

    run_rig(body, seed, flush_interval_s=0.05)


def test_a_crash_of_the_process_alone_keeps_what_was_acknowledged_before_its_sync() -> None:
    async def body(rig: Rig) -> None:
        for entry_id in range(20):
            client = await rig.connect_v3()
            assert await client.add(codec(), entry_id, b"%d" % entry_id, deferred_sync=True) is Status.OK
            await rig.restart(keep_unsynced=True)
        client = await rig.connect_v3()
        for entry_id in range(20):
            assert (await client.read(5, entry_id)).status is Status.OK

    run_rig(body, flush_interval_s=100.0)


def test_a_force_covers_the_adds_of_every_connection() -> None:
    async def body(rig: Rig) -> None:
        writer, other = await rig.connect_v3(), await rig.connect_v3()
        for entry_id in range(10):
            assert await writer.add(codec(), entry_id, deferred_sync=True) is Status.OK
            assert await other.force(5) is Status.OK
            await rig.restart()
            writer, other = await rig.connect_v3(), await rig.connect_v3()
            assert (await other.read(5, entry_id)).status is Status.OK

    run_rig(body, flush_interval_s=100.0)


def test_a_force_that_comes_between_write_and_sync_waits_for_the_sync() -> None:
    async def body(rig: Rig) -> None:
        writer, other = await rig.connect_v3(), await rig.connect_v3()
        rig.disk.sync_time = lambda: 0.2
        clock = asyncio.get_running_loop().time
        for entry_id in range(5):
            begun = clock()
            assert await writer.add(codec(), entry_id, deferred_sync=True) is Status.OK
            assert clock() - begun < 0.1
            assert await other.force(5) is Status.OK
            assert clock() - begun >= 0.2
            await rig.restart()
            writer, other = await rig.connect_v3(), await rig.connect_v3()
            assert (await other.read(5, entry_id)).status is Status.OK

    run_rig(body, flush_interval_s=100.0)


def test_a_million_forces_wait_in_bounded_memory() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        most = 0
        frames = client.encode(add(0)) + b"".join(client.encode(ForceRequest(5)) for _ in range(5_000))
        journal = rig.bookie.storage.journals[0]
        client.send_bytes(frames)
        while client.answers.qsize() < 5_001:
            most = max(most, journal.commit.unsynced)
            await asyncio.sleep(0.0001)
        assert most <= 2 * 64

    run_rig(body, journal_queue_bytes=64 * 1024)
