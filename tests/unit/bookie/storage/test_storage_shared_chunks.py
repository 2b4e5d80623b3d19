"""Large entries stay in the chunk that brought them: what that keeps in memory is counted, and the bytes are the same everywhere."""

from __future__ import annotations

import asyncio
from itertools import accumulate, pairwise

import pytest

from tests.unit.bookie.bookie_rig import RawClient, Rig, run_rig
from triplicate.bookie.core.chunk_entries import SHARED_ENTRY_BYTES, entries_of
from triplicate.bookie.server.server_connection import ServerConnection
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import ADD_HEAD_BYTES, AddRequest, AddResponse, Status, encode_request

LARGE = 3 * SHARED_ENTRY_BYTES


def frame(codec: EntryCodec, entry_id: int, size: int = LARGE, *, damaged: bool = False) -> bytes:
    entry = codec.encode(entry_id, entry_id - 1, 1, entry_id.to_bytes(2, "big") * (size // 2))
    return encode_request(AddRequest(codec.ledger_id, entry_id, codec.master_key, entry[:-1] + b"?" if damaged else entry))


def connection_of(rig: Rig) -> ServerConnection:
    (connection,) = rig.bookie.connections
    return connection


def kept(rig: Rig) -> tuple[int, int]:
    """Bytes that the entries of the write cache keep alive, and how many of them share what they lie in."""
    owners: dict[int, int] = {}
    shared = 0
    for table in rig.bookie.storage.cache.active.values():
        for entry in table.values():
            owner = entry.obj if isinstance(entry, memoryview) else entry
            shared += isinstance(entry, memoryview)
            owners[id(owner)] = len(owner)  # type: ignore[arg-type]
    return sum(owners.values()), shared


async def statuses(client: RawClient, count: int) -> dict[int, Status]:
    found = {}
    for _ in range(count):
        answer = await client.answer()
        assert isinstance(answer, AddResponse)
        found[answer.entry_id] = answer.status
    assert len(found) == count
    return found


async def begin(rig: Rig) -> tuple[RawClient, EntryCodec]:
    """A client, and a ledger whose digest the bookie knows."""
    codec = await rig.create_ledger(5)
    client = await rig.connect()
    assert await client.add(codec, 0) is Status.OK
    await asyncio.sleep(1)
    await rig.flushed()
    return client, codec


@pytest.mark.parametrize(("size", "before", "shared"), [(LARGE, 0, True), (LARGE, LARGE, False), (SHARED_ENTRY_BYTES // 2, 0, False)])
def test_only_large_entries_that_are_most_of_their_chunk_share_it(size: int, before: int, shared: bool) -> None:
    codec = EntryCodec(5, DigestType.CRC32C, b"")
    frames = [frame(codec, entry_id, size) for entry_id in range(4)]
    buffer = bytes(before) + b"".join(frames)
    offsets = list(accumulate(map(len, frames), initial=before))
    entries, held_bytes = entries_of(buffer, offsets)
    assert [bytes(entry) for entry in entries] == [buffer[start + ADD_HEAD_BYTES : end] for start, end in pairwise(offsets)]
    assert {type(entry) for entry in entries} == ({memoryview} if shared else {bytes})
    assert held_bytes >= (len(buffer) if shared else sum(map(len, entries)))


def test_shared_chunks_are_counted_and_read_the_same_from_cache_logs_and_journal() -> None:
    async def body(rig: Rig) -> None:
        client, codec = await begin(rig)
        frames = [frame(codec, entry_id) for entry_id in range(1, 9)]
        connection_of(rig).data_received(b"".join(frames))
        held_bytes, shared = kept(rig)
        assert shared == len(frames)
        assert held_bytes <= rig.bookie.storage.cache.active_bytes
        assert set((await statuses(client, len(frames))).values()) == {Status.OK}

        async def same() -> None:
            for entry_id, sent in enumerate(frames, 1):
                assert (await client.read(5, entry_id)).body == sent[ADD_HEAD_BYTES:]

        await same()
        await rig.flushed()
        await same()
        await rig.restart()
        client = await rig.connect()
        await same()

    run_rig(body, flush_interval_s=3.0, write_cache_bytes=4 << 20)


@pytest.mark.parametrize("damaged", [False, True])
def test_a_chunk_of_which_little_is_taken_is_not_kept(damaged: bool) -> None:
    """The rest is refused for its digest, or of a ledger that is fenced."""

    async def body(rig: Rig) -> None:
        client, codec = await begin(rig)
        other = await rig.create_ledger(6)
        await client.add(other, 0)
        await client.fence(other)
        await rig.flushed()
        refused = [frame(codec, entry_id, damaged=True) if damaged else frame(other, entry_id) for entry_id in range(2, 9)]
        connection_of(rig).data_received(b"".join([frame(codec, 1), *refused]))
        assert kept(rig) == (len(frame(codec, 1)) - ADD_HEAD_BYTES, 0)
        assert [status for status in (await statuses(client, 8)).values() if status is Status.OK] == [Status.OK]

    run_rig(body, flush_interval_s=3.0, write_cache_bytes=4 << 20)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("cut", [3, 4, 30, LARGE // 2])
def test_a_large_chunk_behind_the_beginning_of_a_frame_is_taken_in_order(cut: int, known: bool) -> None:
    """Where the ledger is not known yet, the frame begun before waits for it, and with it all that came behind."""

    async def body(rig: Rig) -> None:
        codec = await rig.create_ledger(5)
        client = await rig.connect()
        if known:
            await client.add(codec, 0)
        await asyncio.sleep(0.5)
        stream = b"".join(frame(codec, entry_id) for entry_id in range(1, 9))
        connection = connection_of(rig)
        connection.data_received(stream[:cut])
        connection.data_received(stream[cut:-20])
        connection.data_received(stream[-20:])
        answers = [await client.answer() for _ in range(8)]
        assert [answer.entry_id for answer in answers if isinstance(answer, AddResponse)] == list(range(1, 9))
        assert {answer.status for answer in answers} == {Status.OK}
        for entry_id in range(1, 9):
            assert (await client.read(5, entry_id)).body == frame(codec, entry_id)[ADD_HEAD_BYTES:]

    run_rig(body, write_cache_bytes=4 << 20)
