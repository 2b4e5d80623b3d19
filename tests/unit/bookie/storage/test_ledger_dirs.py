"""Entry logs over several ledger directories: in turn, past those without space, over restarts and crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import Rig
from triplicate.bookie.storage.ledger_dirs import LedgerDirs
from triplicate.errors import CorruptionError
from triplicate.ledger import EntryCodec
from triplicate.wire import Status


class TwoDisks:
    """Free space by directory, over one disk."""

    def __init__(self, disk: Any, space: dict[str, tuple[int, int]]) -> None:
        self._disk = disk
        self.space = space

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def free_space(self, path: str) -> tuple[int, int]:
        return next(space for prefix, space in self.space.items() if path.startswith(prefix))


def test_directories_take_turns_and_full_ones_come_last() -> None:
    space = {"/a": (50, 100), "/b": (50, 100), "/c": (50, 100)}
    places = LedgerDirs(TwoDisks(None, space), ["/a", "/b", "/c"], 0.95)
    assert [places.in_turn()[0] for _ in range(6)] == ["/a", "/b", "/c", "/a", "/b", "/c"]
    space["/b"] = (4, 100)
    assert [places.in_turn() for _ in range(2)] == [["/a", "/c", "/b"], ["/c", "/a", "/b"]]
    assert places.in_turn(needed_bytes=60)[0] in ("/a", "/c")
    space["/a"] = (1, 100)
    assert places.in_turn(10)[0] == "/c"
    assert places.pass_over("/c")
    assert places.in_turn()[-1] == "/c"
    assert places.pass_over("/a")
    assert not places.pass_over("/b")
    places.worked("/c")
    assert places.in_turn()[0] == "/c"
    places.pass_over("/c")
    space["/c"] = (2 << 20, 4 << 20)
    assert places.in_turn()[0] == "/c"


def run_with_directories(body: Callable[[Rig], Awaitable[None]], count: int, seed: int = 1, **settings: Any) -> None:
    directories = tuple(f"/data/ledgers-{number}" for number in range(count))
    rig = Rig(seed, **{"ledger_directories": directories, "flush_interval_s": 3600.0, **settings})
    for directory in directories:
        rig.disk.make_directory(directory)

    async def main() -> None:
        await rig.cluster.start()
        await rig.client_host.call(as_coroutine(body(rig)))

    try:
        rig.world.run(main())
    finally:
        rig.world.close()


async def as_coroutine(awaitable: Awaitable[None]) -> None:
    await awaitable


def by_directory(rig: Rig, count: int) -> list[int]:
    return [len([name for name in rig.files(f"/data/ledgers-{number}/current") if name.endswith(".entries")]) for number in range(count)]


async def fill_directories(rig: Rig, first: int, last: int) -> None:
    codec = EntryCodec(5, (await rig.create_ledger(5)).digest_type, b"") if first == 0 else rig.codec  # type: ignore[attr-defined]
    rig.codec = codec  # type: ignore[attr-defined]
    client = await rig.connect()
    for entry_id in range(first, last):
        assert await client.add(codec, entry_id, b"%d " % entry_id * 5000) is Status.OK
        if entry_id % 3 == 2:
            await rig.bookie.storage.flush()


async def check_directories(rig: Rig, last: int) -> None:
    client = await rig.connect()
    for entry_id in range(last):
        answer = await client.read(5, entry_id)
        assert answer.status is Status.OK, (entry_id, answer)


@pytest.mark.parametrize("count", [2, 3])
def test_logs_spread_over_directories_and_survive_restarts_and_crashes(count: int) -> None:
    async def body(rig: Rig) -> None:
        await fill_directories(rig, 0, 60)
        assert min(by_directory(rig, count)) >= 2
        await rig.restart()
        await check_directories(rig, 60)
        await fill_directories(rig, 60, 90)
        await rig.node.stop()
        rig.node.crash()
        await rig.node.start()
        await check_directories(rig, 90)
        rig.node.crash()
        for name in ("index.db", "index.db-commits"):
            rig.disk.names.live.pop(f"/data/ledgers-0/current/{name}")
            rig.disk.names.durable.pop(f"/data/ledgers-0/current/{name}")
        await rig.node.start()
        await check_directories(rig, 90)

    run_with_directories(body, count)


def test_a_directory_without_space_is_passed_over_while_another_has_some() -> None:
    async def body(rig: Rig) -> None:
        full, filled = "/data/ledgers-1/", 3
        await fill_directories(rig, 0, filled)
        # The log being filled is in that directory, so that its next block is what finds no space.
        stored = rig.bookie.storage.stored
        while stored.writer._open is None or not stored._paths[stored.writer._open.number].startswith(full):
            await fill_directories(rig, filled, filled + 3)
            filled += 3
        before = by_directory(rig, 3)

        def refuse(kind: str, path: str) -> None:
            if kind in ("write", "create") and path.startswith(full):
                raise OSError(28, "No space left on device", path)

        rig.disk.before_operation = refuse
        await fill_directories(rig, filled, 90)
        assert not rig.facts("bookie.flush_without_space")
        assert rig.facts("bookie.directory_passed_over")
        after = by_directory(rig, 3)
        assert after[1] <= before[1]
        assert after[0] > before[0]
        assert after[2] > before[2]
        rig.disk.before_operation = None
        await check_directories(rig, 90)
        await rig.restart()
        await check_directories(rig, 90)
        assert await rig.bookie.compact(0.8) >= 0

    run_with_directories(body, 3)


def test_the_same_log_in_two_directories_is_refused() -> None:
    async def body(rig: Rig) -> None:
        await fill_directories(rig, 0, 45)
        await rig.node.stop()
        rig.node.crash()
        name = next(name for name in rig.files("/data/ledgers-0/current") if name.endswith(".entries"))
        inode = rig.disk.names.live[f"/data/ledgers-0/current/{name}"]
        rig.disk.names.live[f"/data/ledgers-1/current/{name}"] = inode
        with pytest.raises(CorruptionError, match="have the same number: one is a copy; move it away"):
            await rig.node.start()
        rig.node.crash(keep_unsynced=True)
        del rig.disk.names.live[f"/data/ledgers-1/current/{name}"]
        await rig.node.start()
        await check_directories(rig, 45)

    run_with_directories(body, 2)


@pytest.mark.parametrize("seed", range(6))
def test_a_log_that_a_start_discarded_does_not_come_back_beside_one_of_its_number(seed: int) -> None:
    async def body(rig: Rig) -> None:
        await fill_directories(rig, 0, 4)
        # A flush writes a log that the index never comes to know.
        rig.bookie.storage.stored.writer.finish()
        rig.disk.fail_next_sync("/data/ledgers-0/current/index.db-commits")
        flush = asyncio.ensure_future(rig.bookie.storage.flush())
        async with asyncio.timeout(20):
            await rig.bookie.wait_failed()
        flush.cancel()
        rig.node.crash(keep_unsynced=False)
        await rig.node.start()
        assert rig.facts("bookie.entry_log_discarded")
        # The next log goes to another directory than the one before, as it may when one has filled or was added.
        rig.bookie.storage.stored._places.in_turn()
        await fill_directories(rig, 4, 5)
        await rig.bookie.storage.flush()
        rig.node.crash()
        await rig.node.start()
        await check_directories(rig, 5)

    run_with_directories(body, 3, seed)


@pytest.mark.parametrize("count", [2, 3])
def test_a_crash_at_any_step_of_a_flush_over_directories_loses_nothing(count: int) -> None:
    step, tried = 0, True
    while tried:
        tried = crash_in_flush(step, count)
        step += 1
    assert step > 10


def crash_in_flush(step: int, count: int) -> bool:
    happened: list[str] = []

    async def body(rig: Rig) -> None:
        await fill_directories(rig, 0, 13)
        rig.kill_at(step, happened)
        flush = asyncio.ensure_future(rig.bookie.storage.flush())
        await asyncio.sleep(2)
        rig.disk.before_operation = None
        flush.cancel()
        if happened:
            await rig.node.start()
            await check_directories(rig, 13)

    run_with_directories(body, count, step, entry_log_bytes=64 * 1024)
    return bool(happened)
