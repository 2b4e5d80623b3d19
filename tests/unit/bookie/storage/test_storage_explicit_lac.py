"""An explicit last-add-confirmed reaches readers and its writer only once the journal has synced it, so that no crash takes it back."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.unit.bookie.bookie_rig import Rig, V3Client, run_rig
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import ReadLacResponse, ReadRequest, ReadResponse, Status, WriteLacRequest, WriteLacResponse

SYNC_S = 0.5
JOURNAL = "/data/journal/current"


def codec() -> EntryCodec:
    return EntryCodec(5, DigestType.CRC32C, b"")


def write(lac: int) -> WriteLacRequest:
    return WriteLacRequest(5, lac, codec().master_key, codec().encode_lac(lac))


async def told(client: V3Client) -> tuple[int, int | None, int | None]:
    """The answers to each kind of request: the explicit record, the piggyback of a read, a long poll without a wait."""
    record = (await client.read_lac(5)).lac_body
    polled = await client.ask(ReadRequest(5, -1, previous_lac=100, timeout_ms=1, piggyback=True))
    assert isinstance(polled, ReadResponse)
    return codec().decode_lac(record) if record is not None else -1, (await client.read(5, 9)).max_lac, polled.max_lac


async def ten_entries(rig: Rig) -> tuple[V3Client, V3Client]:
    """Entries 0 to 9, the last of which says that 8 are confirmed, and an explicit record that says the same; a writer, a reader."""
    writer, reader = await rig.connect_v3(), await rig.connect_v3()
    for entry_id in range(10):
        assert await writer.add(codec(), entry_id) is Status.OK
    assert await writer.write_lac(codec(), 8) is Status.OK
    return writer, reader


def test_a_record_that_is_not_synced_yet_is_shown_to_nobody() -> None:
    async def body(rig: Rig) -> None:
        writer, reader = await ten_entries(rig)
        rig.disk.sync_time = lambda: SYNC_S
        writer.send(write(9))
        await asyncio.sleep(SYNC_S / 5)
        assert await told(reader) == (8, 8, 8)
        assert writer.answers.empty()
        await rig.restart()
        # The crash may keep what was written and not synced.
        assert await told(await rig.connect_v3()) in {(8, 8, 8), (9, 9, 9)}

    run_rig(body, flush_interval_s=100.0)


def test_a_long_poll_sleeps_until_the_record_is_synced() -> None:
    async def body(rig: Rig) -> None:
        writer, reader = await ten_entries(rig)
        rig.disk.sync_time = lambda: SYNC_S
        writer.send(write(9))
        reader.send(ReadRequest(5, -1, previous_lac=8, timeout_ms=10_000, piggyback=True))
        begun = asyncio.get_running_loop().time()
        found = await reader.answer()
        assert isinstance(found, ReadResponse)
        assert (found.status, found.entry_id, found.max_lac) == (Status.OK, 9, 9)
        assert asyncio.get_running_loop().time() - begun >= SYNC_S
        await rig.restart()
        assert await told(await rig.connect_v3()) == (9, 9, 9)

    run_rig(body, flush_interval_s=100.0)


@pytest.mark.parametrize("seed", range(8))
def test_what_a_reader_was_shown_is_never_smaller_after_a_crash(seed: int) -> None:
    async def body(rig: Rig) -> None:
        entropy = random.Random(seed)
        seen = -1
        lac = 0
        for _ in range(6):
            writer, reader = await rig.connect_v3(), await rig.connect_v3()
            rig.disk.sync_time = lambda: entropy.uniform(0.001, 0.02)
            for _ in range(entropy.randint(1, 6)):
                lac += 1
                writer.send(write(lac))
                await asyncio.sleep(entropy.choice((0.0, 0.001, 0.01)))
                record = (await reader.read_lac(5)).lac_body
                seen = max(seen, codec().decode_lac(record) if record is not None else -1)
            await rig.restart(keep_unsynced=entropy.random() < 0.3)
            record = (await (await rig.connect_v3()).read_lac(5)).lac_body
            assert (codec().decode_lac(record) if record is not None else -1) >= seen

    run_rig(body, seed, flush_interval_s=0.05)


def test_a_record_whose_sync_fails_is_neither_acknowledged_nor_shown() -> None:
    async def body(rig: Rig) -> None:
        writer, _ = await ten_entries(rig)
        rig.disk.failing_syncs.append(JOURNAL)
        writer.send(write(9))
        await writer.until_closed()
        answers = [writer.answers.get_nowait() for _ in range(writer.answers.qsize())]
        assert WriteLacResponse(Status.OK, 5) not in answers
        await rig.node.stop()
        await rig.restart()
        assert await told(await rig.connect_v3()) in {(8, 8, 8), (9, 9, 9)}

    run_rig(body, flush_interval_s=100.0)


def test_a_smaller_record_takes_nothing_back() -> None:
    async def body(rig: Rig) -> None:
        writer, reader = await ten_entries(rig)
        assert await writer.write_lac(codec(), 9) is Status.OK
        assert await writer.write_lac(codec(), 3) is Status.OK
        for _ in range(2):
            assert await told(reader) == (9, 9, 9)
            await rig.restart()
            reader = await rig.connect_v3()

    run_rig(body, flush_interval_s=100.0)


def test_a_ledger_deleted_while_its_record_is_synced_stays_empty() -> None:
    async def body(rig: Rig) -> None:
        await rig.create_ledger(5)
        writer, reader = await ten_entries(rig)
        rig.disk.sync_time = lambda: SYNC_S
        handle = rig.bookie.storage.ledgers.get(5)
        assert handle is not None
        writer.send(write(9))
        await asyncio.sleep(SYNC_S / 5)
        handle.forget()
        await writer.answer()
        assert (handle.durable_explicit_lac, handle.max_lac) == (None, -1)
        assert await reader.read_lac(5) == ReadLacResponse(Status.NO_ENTRY, 5)

    run_rig(body, flush_interval_s=100.0)
