"""A copy restored from a snapshot taken at any point, which then follows the log, equals one that followed from the beginning."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.property import rowlog_workload as workload
from tests.property.snapshot_workload import RecordedPair, snapshot_and_restore


def _run(folder: Path, seed: int, transactions: int, *, schema_changes: bool) -> int:
    chance = random.Random(seed)
    pair = RecordedPair(folder)
    restored: list[Path] = []

    def step() -> None:
        if schema_changes or chance.random() < 0.6:
            workload.transaction(pair, chance, schema_changes=schema_changes)
        else:
            workload.group(pair, chance)

    try:
        pair.script(workload.SCHEMA)
        for _ in range(transactions):
            step()
            if chance.random() < 0.15:
                restored.append(folder / f"restored-{len(restored)}.db")
                # Of the leader's file as well as of a follower's, with transactions that begin and end while it is copied.
                position = snapshot_and_restore(chance.choice(pair.paths), restored[-1], step)
                assert position <= pair.writer.position
        for path in restored:
            pair.replay(str(path))
    finally:
        pair.close()
    leader = workload.contents(pair.paths[0])
    for path in restored:
        copy = workload.contents(str(path))
        assert {name for name in leader if leader[name] != copy.get(name)} == set()
        assert leader.keys() == copy.keys()
    return len(restored)


@pytest.mark.parametrize("block", range(4))
def test_a_restored_copy_that_follows_equals_the_leader(block: int, tmp_path: Path) -> None:
    count = 0
    for seed in range(block * 3, block * 3 + 3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        count += _run(folder, seed, 30, schema_changes=False)
    assert count > 0


@pytest.mark.parametrize("block", range(4))
def test_a_restored_copy_equals_the_leader_when_the_schema_changes(block: int, tmp_path: Path) -> None:
    count = 0
    for seed in range(100 + block * 2, 102 + block * 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        count += _run(folder, seed, 25, schema_changes=True)
    assert count > 0
