"""The scrubber finds damaged entries of every kind, reports those that count, and continues where it stopped."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import NAME, Rig, run_rig
from tests.unit.bookie.crash_rig import LEDGERS
from tests.waiting import eventually
from triplicate.bookie.core.entry_log_format import BLOCK_HEADER_BYTES, SIZE, TABLE_ROW, BlockInfo
from triplicate.bookie.storage.index_vfs import PAGE_BYTES
from triplicate.ledger import DigestType, EntryCodec
from triplicate.metadata import ClusterMetadata, MemoryTree
from triplicate.runtime import TaskScope
from triplicate.wire import AddRequest, Status

FAST: dict[str, Any] = {"scrub_bytes_per_s": 1 << 30, "scrub_share_of_time": 1.0}
SCRUB = f"{LEDGERS}/scrub"


async def write(rig: Rig, ledger_id: int, entries: int, digest_type: DigestType = DigestType.CRC32C, *, first: int = 0) -> EntryCodec:
    """A flushed run of a ledger."""
    codec = await rig.create_ledger(ledger_id, digest_type, b"secret") if not first else EntryCodec(ledger_id, digest_type, b"secret")
    client = await rig.connect()
    for entry_id in range(first, first + entries):
        assert await client.add(codec, entry_id, b"payload of %d" % entry_id * 20) is Status.OK
    await rig.bookie.storage.flush()
    return codec


def place(rig: Rig, ledger_id: int, entry_id: int) -> tuple[str, BlockInfo, int]:
    """Entry log, run, and offset in the file of the size before an entry, of the copy that reads deliver."""
    stored = rig.bookie.storage.stored
    log, run = stored.index.runs_holding(ledger_id, entry_id)[0]
    path = stored.path_of(log)
    assert path is not None
    row = run.table_offset + (entry_id - run.first) * TABLE_ROW.size
    _, offset = TABLE_ROW.unpack(bytes(rig.disk.names.live[path].live.data[row : row + TABLE_ROW.size]))
    return path, run, run.body_offset + offset


def flip(rig: Rig, path: str, offset: int) -> None:
    rig.disk.flip_bit(path, offset, 3)


async def metadata_of(rig: Rig) -> ClusterMetadata:
    return await ClusterMetadata.open(MemoryTree(rig.cluster.store), rig.client_host.port)


async def reported(rig: Rig, ledger_id: int) -> tuple[range, ...]:
    """The damaged entries that the metadata record of this bookie; the ledger is marked if there are any."""
    async with await metadata_of(rig) as metadata:
        record = await metadata.damaged_copies.get(ledger_id)
        mark = await metadata.under_replication.get(ledger_id)
        assert (record is None) is (mark is None)
        assert mark is None or mark.missing == (NAME,)
        return () if record is None else record.copies[NAME]


@pytest.mark.parametrize("digest_type", DigestType)
def test_a_pass_reads_every_entry_and_finds_nothing_in_good_logs(digest_type: DigestType) -> None:
    async def body(rig: Rig) -> None:
        await write(rig, 1, 40, digest_type)
        await write(rig, 2, 10, digest_type)
        await write(rig, 1, 7, digest_type, first=40)
        done = await rig.bookie.scrub()
        assert (done.entries, done.damaged, done.index_faults) == (57, 0, 0)
        assert rig.bookie.parts.scrubber.state.damage == ()
        assert await reported(rig, 1) == ()

    run_rig(body, **FAST)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("payload", (range(7, 8),)),
        ("digest", (range(7, 8),)),
        ("id", (range(7, 8),)),
        ("size", (range(7, 8),)),
        ("table", (range(20),)),
        ("header", (range(20),)),
    ],
)
def test_a_flipped_bit_is_found_and_reported(where: str, expected: tuple[range, ...]) -> None:
    async def body(rig: Rig) -> None:
        await write(rig, 1, 20)
        await write(rig, 2, 20)
        path, run, offset = place(rig, 1, 7)
        places = {
            "payload": offset + SIZE.size + 50,
            "digest": offset + SIZE.size + 33,
            "id": offset + SIZE.size + 15,
            "size": offset + 3,
            "table": run.table_offset + 5,
            "header": run.offset + BLOCK_HEADER_BYTES - 20,
        }
        flip(rig, path, places[where])
        done = await rig.bookie.scrub()
        damaged = sum(map(len, expected))
        assert done.damaged == damaged
        assert await reported(rig, 1) == expected
        assert await reported(rig, 2) == ()
        (found,) = rig.bookie.parts.scrubber.state.damage
        assert (found.ledger_id, found.first, found.last) == (1, expected[0].start, expected[0].stop - 1)
        (fact,) = rig.facts("bookie.scrub_found_damage")
        assert dict(fact.facts)["ledger_id"] == 1
        # Found again by every pass until it is repaired, and reported once.
        assert (await rig.bookie.scrub()).damaged == damaged
        assert await reported(rig, 1) == expected

    run_rig(body, **FAST)


def test_the_last_entry_log_belongs_to_the_pass() -> None:
    async def body(rig: Rig) -> None:
        for number in range(3):
            await write(rig, 1, 8, first=8 * number)
        await write(rig, 2, 8)
        path, _, offset = place(rig, 2, 7)
        stored = rig.bookie.storage.stored
        assert path == stored.path_of(max(stored.index.log_sizes()))
        flip(rig, path, offset + 60)
        assert (await rig.bookie.scrub()).damaged == 1
        assert await reported(rig, 2) == (range(7, 8),)

    run_rig(body, **FAST, entry_log_bytes=65536)


def test_an_entry_that_is_stored_again_counts_in_its_new_place() -> None:
    async def body(rig: Rig) -> None:
        codec = await write(rig, 1, 20)
        path, _, offset = place(rig, 1, 7)
        flip(rig, path, offset + 60)
        client = await rig.connect()
        await client.fence(codec)
        assert (await rig.bookie.scrub()).damaged == 1
        entry = b"payload of %d" % 7 * 20
        assert await client.add(codec, 7, entry, recovery=True) is Status.OK
        # In the write cache, then in a run of its own, then behind a restart.
        assert (await rig.bookie.scrub()).damaged == 0
        await rig.bookie.storage.flush()
        assert (await rig.bookie.scrub()).damaged == 0
        await rig.restart()
        assert (await rig.bookie.scrub()).damaged == 0
        answer = await (await rig.connect()).read(1, 7)
        assert answer.body is not None
        assert codec.decode(answer.body, 7).payload == entry
        newest, _, again = place(rig, 1, 7)
        assert (newest, again) != (path, offset)
        flip(rig, newest, again + 60)
        assert (await rig.bookie.scrub()).damaged == 1

    run_rig(body, **FAST)


def test_an_entry_that_was_bad_in_the_journal_is_found() -> None:
    async def body(rig: Rig) -> None:
        codec = await rig.create_ledger(1)
        client = await rig.connect()
        bad = bytearray(codec.encode(0, -1, 7, b"payload"))
        bad[-1] ^= 1
        # The first add arrives before the ledger's digest type is known, so that it is not verified.
        answer = await client.ask(AddRequest(1, 0, codec.master_key, bytes(bad)))
        assert answer.status is Status.OK
        await rig.restart()
        assert (await (await rig.connect()).read(1, 0)).body == bytes(bad)
        await rig.bookie.storage.flush()
        assert (await rig.bookie.scrub()).damaged == 1
        assert await reported(rig, 1) == (range(1),)

    run_rig(body, **FAST)


def test_deleted_ledgers_and_copies_that_are_not_promised_are_of_no_concern() -> None:
    async def body(rig: Rig) -> None:
        for ledger_id in (1, 2, 3):
            await write(rig, ledger_id, 10)
            path, _, offset = place(rig, ledger_id, 5)
            flip(rig, path, offset + 60)
        await rig.delete_ledger(1)
        async with await metadata_of(rig) as metadata:
            found = await metadata.ledgers.get(2)
            moved = replace(found.value, segments=(replace(found.value.segments[0], ensemble=("bookie-9",)),))
            await metadata.ledgers.update(2, moved, found.version)
        assert (await rig.bookie.scrub()).damaged == 1
        assert [await reported(rig, ledger_id) for ledger_id in (1, 2, 3)] == [(), (), (range(5, 6),)]

    run_rig(body, **FAST)


def test_the_pass_keeps_its_rate() -> None:
    async def body(rig: Rig) -> None:
        await write(rig, 1, 100)
        clock = rig.client_host.port.clock
        began = clock.monotonic()
        done = await rig.bookie.scrub()
        assert done.size_bytes / 10_000 <= clock.monotonic() - began <= done.size_bytes / 10_000 + 10

    run_rig(body, scrub_bytes_per_s=10_000, scrub_share_of_time=1.0)


def test_a_pass_continues_after_a_restart_at_its_next_entry_log() -> None:
    async def body(rig: Rig) -> None:
        await rig.create_ledger(1, password=b"secret")
        for number in range(4):
            await write(rig, 1, 300, first=300 * number + 1)
        logs = list(rig.bookie.storage.stored.index.log_sizes())
        assert len(logs) > 2
        scope = TaskScope("passes")
        scope.spawn(rig.bookie.scrub(), name="pass")
        await eventually(lambda: "scrub" in rig.files(LEDGERS), 300.0)
        before = rig.bookie.parts.scrubber.state.present
        assert before is not None
        scope.cancel()
        await scope.aclose()
        await rig.restart()
        after = rig.bookie.parts.scrubber.state.present
        assert after is not None
        assert logs[0] < after.next_log <= logs[-1]
        assert (after.began_ms, after.last_log) == (before.began_ms, before.last_log)
        last = await rig.bookie.scrub()
        assert last.entries == 1200
        assert rig.bookie.parts.scrubber.state.present is None

    run_rig(body, scrub_bytes_per_s=8192, scrub_share_of_time=1.0, entry_log_bytes=65536)


def test_passes_begin_an_interval_apart() -> None:
    async def body(rig: Rig) -> None:
        await write(rig, 1, 10)
        await eventually(lambda: len(rig.facts("bookie.scrubbed")) == 3, 300.0)
        times = [fact.time_s for fact in rig.facts("bookie.scrubbed")]
        assert [round(after - before) for before, after in pairwise(times)] == [30, 30]

    run_rig(body, **FAST, scrub_interval_s=30.0)


def test_a_state_that_cannot_be_read_begins_a_new_pass() -> None:
    async def body(rig: Rig) -> None:
        await write(rig, 1, 10)
        await rig.bookie.scrub()
        flip(rig, SCRUB, 0)
        await rig.restart()
        assert rig.facts("bookie.scrub_state_unreadable")
        assert (await rig.bookie.scrub()).entries == 10

    run_rig(body, **FAST)


def test_a_damaged_index_is_reported_and_the_bookie_goes_on() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for ledger_id in range(1, 701):
            codec = EntryCodec(ledger_id, DigestType.CRC32C, b"")
            assert await client.add(codec, 0) is Status.OK
        await rig.bookie.storage.flush()
        # A start copies the pages of the last commits into the database file.
        await rig.restart()
        path = rig.bookie.storage.stored.index.path
        for offset in range(PAGE_BYTES, rig.disk.names.live[path].live.size, PAGE_BYTES):
            flip(rig, path, offset + 600)
        done = await rig.bookie.scrub()
        assert (done.damaged, done.index_faults) == (0, 1)
        assert "index" in str(rig.facts("bookie.scrub_index_fault")[0])
        assert not rig.bookie.failed

    run_rig(body, **FAST, index_cache_bytes=65536)
