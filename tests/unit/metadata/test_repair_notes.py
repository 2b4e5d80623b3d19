"""Notes of replication workers about ledgers that they could not repair."""

from __future__ import annotations

import asyncio

import pytest

from triplicate.errors import FormatError
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree
from triplicate.metadata.core.own_paths import repair_note_path
from triplicate.metadata.repair_notes import REASON_MAX, decode_repair_note
from triplicate.runtime import real_host


async def opened() -> ClusterMetadata:
    host = real_host("test", seed=1)
    return await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True)


def test_a_note_is_kept_with_its_first_time_until_it_is_cleared() -> None:
    async def main() -> None:
        async with await opened() as cluster:
            notes = cluster.repair_notes
            assert await notes.get(7) is None
            await notes.record(7, "entry 3 has no copy", "w1")
            first = await notes.get(7)
            assert first is not None
            assert (first.reason, first.worker) == ("entry 3 has no copy", "w1")
            await notes.record(7, "entry 3 has no copy", "w2")
            assert await notes.get(7) == first
            await notes.record(7, "x" * 10_000, "w2")
            second = await notes.get(7)
            assert second is not None
            assert (len(second.reason), second.worker) == (REASON_MAX, "w2")
            assert await notes.ledger_ids() == [7]
            await notes.clear(7)
            await notes.clear(7)
            assert await notes.ledger_ids() == []

    asyncio.run(main())


def test_a_note_that_cannot_be_read_is_replaced() -> None:
    async def main() -> None:
        async with await opened() as cluster:
            await cluster.tree.create(repair_note_path(cluster.own_root, 7), b"?", parents=True)
            with pytest.raises(FormatError, match="not a note of a repair"):
                await cluster.repair_notes.get(7)
            await cluster.repair_notes.record(7, "why", "w")
            note = await cluster.repair_notes.get(7)
            assert note is not None
            assert note.reason == "why"

    asyncio.run(main())


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"v":1}', b'{"v":2,"reason":"r","worker":"w","time_ms":1}'])
def test_other_data_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_repair_note(data)


def test_the_format_is_the_documented_one() -> None:
    note = decode_repair_note(b'{"reason":"r","time_ms":5,"v":1,"worker":"w","later":0}')
    assert (note.reason, note.worker, note.time_ms) == ("r", "w", 5)
