"""The workload of the crash tests: short, but with every kind of write that a bookie makes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from tests.crash.lives import Lives
from triplicate.bookie.storage import index_vfs
from triplicate.wire import Status

COMMITS_BYTES = 60_000
"""Instead of half a mebibyte, so that the index copies its commits within a short workload."""


@contextmanager
def small_commits() -> Iterator[None]:
    before = index_vfs.COMMITS_BYTES_MAX
    index_vfs.COMMITS_BYTES_MAX = COMMITS_BYTES
    try:
        yield
    finally:
        index_vfs.COMMITS_BYTES_MAX = before


async def run_workload(lives: Lives, seed: int) -> None:
    """Run the whole workload. If the machine fails meanwhile, this may raise the client's error."""
    lives.machine.disk.interleave = random.Random(seed)
    await first_life(lives)
    await second_life(lives)
    await third_life(lives)


async def first_life(lives: Lives) -> None:
    """A first start, adds over both versions, fences, explicit last-add-confirmed, deferred adds, and concurrent flushes."""
    await lives.start()
    for ledger_id in range(1, 9):
        await lives.create(ledger_id)
    await lives.add_some(1, range(3), b"a" * 300)
    await lives.add_some(2, range(2), b"b" * 700, version=2)
    assert await lives.fence(3) in (Status.NO_ENTRY, Status.IO_ERROR)
    await lives.write_lac(1, 1)
    flush = lives.begin(lives.flush())
    await lives.add_some(1, range(3, 5), b"c" * 100)
    await lives.add(4, 0, b"d" * 2500, version=2)
    await flush
    await lives.add_some(5, range(3), b"e" * 40, lac=-1, deferred=True)
    await lives.add_some(5, range(3, 5), b"f" * 40, lac=-1, deferred=True)
    await lives.force(5)
    await lives.add(5, 5, b"g" * 40, lac=-1, deferred=True)
    await lives.fence(2, version=2)
    await lives.add_some(4, range(1, 4), b"h" * 900)
    await lives.add_some(8, range(2), b"s" * 20)
    await lives.flush()
    # The old writer is refused. Recovery may write entries again, overlapping, with another last-add-confirmed.
    refused = await lives.add(2, 2, b"i")
    assert refused is not Status.OK, refused
    lives.book.of(2).entries.pop(2)
    await lives.add_some(2, range(1, 2), b"b" * 700, lac=-1, recovery=True)
    await lives.stop()


async def second_life(lives: Lives) -> None:
    """A start after a stop, recovery adds over flushed entries, deletion, collection, compaction; then a kill with much unflushed data."""
    await lives.start()
    await lives.add_some(2, range(3), b"B" * 650, lac=-1, recovery=True)
    await lives.add_some(6, range(3), b"j" * 500)
    await lives.write_lac(1, 3)
    flush = lives.begin(lives.flush())
    await lives.add_some(6, range(3, 6), b"k" * 30, version=2)
    await lives.fence(6)
    await flush
    await lives.fence(8)
    await lives.flush()
    await lives.delete(4)
    await lives.delete(8)
    await lives.collect()
    await lives.add_some(7, range(2), b"l" * 1200)
    compaction = lives.begin(lives.compact())
    await lives.flush()
    await compaction
    await lives.collect()
    await lives.add_some(1, range(5, 9), b"m" * 200)
    await lives.add(5, 6, b"n" * 60, lac=-1, deferred=True)
    lives.start_add(7, 2, b"o" * 800)
    lives.start_add(1, 9, b"p" * 20)
    lives.kill()


async def third_life(lives: Lives) -> None:
    """A start that replays unsynced groups, more of each operation, enough to advance marks and index; then a stop."""
    await lives.start()
    await lives.force(5)
    await lives.write_lac(1, 8)
    flush = lives.begin(lives.flush())
    await lives.add_some(7, range(3, 5), b"q" * 300)
    await flush
    for round_number in range(4):
        await lives.add(7, 5 + round_number, b"r" * 400)
        await lives.flush()
    await lives.fence(7)
    await lives.fence(3)
    await lives.delete(2)
    await lives.collect()
    await lives.compact()
    await lives.collect()
    await lives.flush()
    await lives.stop()
