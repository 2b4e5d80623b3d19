"""Marks of a store: written in both halves, read at every level, and never replaced by an earlier one that comes late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.histories.level_doors import KEYS, StoreDoor, store_doors
from benchmarks.histories.levels import Refused
from tests.unit.kv.resp.resp_rig import Stand, play


async def door_of(stand: Stand) -> StoreDoor:
    door = await store_doors("shop")(("127.0.0.1", stand.port))
    assert isinstance(door, StoreDoor)
    return door


def test_marks_are_read_at_every_level(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        door = await door_of(stand)
        positions = [await door.write(mark) for mark in (1, 2, 3)]
        assert positions == sorted(set(positions))
        for level in ("linearizable", "session", "bounded", "any"):
            answer = await door.read(level, 2.0, positions[-1], asks_age=True)
            assert (answer.marks, answer.is_torn) == (frozenset({1, 2, 3}), False)
            assert answer.age_s is not None
            assert answer.age_s >= 0.0
            assert (await door.read(level, 2.0, positions[-1], asks_age=False)).age_s is None
            assert answer.position >= positions[-1]
        async with stand.client() as client:
            await client.set(KEYS[1], 2)
        assert (await door.read("any", 2.0, 0, asks_age=False)).is_torn
        await door.close()

    play(tmp_path, scene)


def test_a_mark_that_comes_late_replaces_no_later_one(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        late, other = await door_of(stand), await door_of(stand)
        await other.write(1)
        ask = late._ask

        async def ask_late(*command: Any) -> Any:
            if command[0] in ("EXEC", "MSET") and not overtaken:
                overtaken.append(await other.write(3))
            return await ask(*command)

        overtaken: list[int] = []
        late._ask = ask_late  # type: ignore[method-assign]
        with pytest.raises(Refused):
            await late.write(2)
        assert (await other.read("linearizable", 0.0, 0, asks_age=True)).marks == frozenset({1, 2, 3})
        await late.close()
        await other.close()

    play(tmp_path, scene)


def test_a_follower_refuses_a_mark(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        await stand.follow()
        door = await door_of(stand)
        with pytest.raises(Refused, match="READONLY"):
            await door.write(1)
        await door.close()

    play(tmp_path, scene)
