"""The record of a repair's progress is replaced, ends with its worker's session, and is refused in another format."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.metadata.stores import run
from triplicate.errors import FormatError
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree, RepairProgress
from triplicate.metadata.repair_progress import decode_repair_progress
from triplicate.runtime import real_host

HALF = RepairProgress("worker", 1000, 2000, 50, 5000, 100, 10.0, 1000.0)


def test_the_record_is_replaced_and_ends_with_the_session_of_its_worker() -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        store = MemoryStore(host.clock)
        async with await ClusterMetadata.open(MemoryTree(store), host, create=True) as reader:
            async with await ClusterMetadata.open(MemoryTree(store), host) as worker:
                assert await reader.repair_notes.progress.get(7) is None
                for entries in (50, 60):
                    await worker.repair_notes.progress.write(7, replace(HALF, entries=entries))
                    assert await reader.repair_notes.progress.get(7) == replace(HALF, entries=entries)
                await worker.repair_notes.progress.clear(7)
                await worker.repair_notes.progress.clear(7)
                assert await reader.repair_notes.progress.get(7) is None
                await worker.repair_notes.progress.write(7, HALF)
            assert await reader.repair_notes.progress.get(7) is None

    run(body())


@pytest.mark.parametrize(
    ("progress", "left_s"),
    [
        (HALF, 5.0),
        (replace(HALF, entries=120), 0.0),
        (replace(HALF, entries_per_s=0.0), None),
        (replace(HALF, expected_entries=None), None),
    ],
)
def test_the_time_left_is_told_where_end_and_rate_are_known(progress: RepairProgress, left_s: float | None) -> None:
    assert progress.left_s == left_s


FIELDS = b'"worker":"w","since_ms":1,"time_ms":2,"entries":3,"bytes":4'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"v":2}',
        b'{"v":1}',
        b'{"v":1,' + FIELDS + b',"expected_entries":null,"entries_per_s":NaN,"bytes_per_s":1}',
        b'{"v":1,' + FIELDS + b',"expected_entries":null,"entries_per_s":-1,"bytes_per_s":1}',
        b'{"v":1,' + FIELDS + b',"expected_entries":"many","entries_per_s":1,"bytes_per_s":1}',
        b'{"v":1,' + FIELDS + b',"expected_entries":Infinity,"entries_per_s":1,"bytes_per_s":1}',
    ],
)
def test_another_format_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_repair_progress(data)
