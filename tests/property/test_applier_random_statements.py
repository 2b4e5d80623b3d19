"""The row log's differential test: a leader runs random SQL, a follower applies its log, and both files must hold the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.examples import examples
from tests.property import rowlog_workload as workload
from triplicate.sql.storage.applier import LogBatch, follow


class GroupedPair(workload.Pair):
    """A pair whose follower applies several batches in one SQLite transaction.

    Args:
        chance: decides how many.
    """

    def __init__(self, folder: Path, chance: random.Random) -> None:
        super().__init__(folder)
        self._chance = chance
        self._waiting: list[LogBatch] = []

    def deliver(self, batch: LogBatch) -> None:
        self._waiting.append(batch)
        if self._chance.random() < 0.1:
            self.apply_waiting()

    def apply_waiting(self) -> None:
        batches, self._waiting = self._waiting, []
        follow(self.applier, batches)


def _run(folder: Path, seed: int, transactions: int, *, schema_changes: bool, grouped: bool = False) -> int:
    chance = random.Random(seed)
    pair = GroupedPair(folder, random.Random(seed)) if grouped else workload.Pair(folder)
    tried = 0
    try:
        pair.script(workload.SCHEMA)
        for _ in range(transactions):
            if schema_changes or chance.random() < 0.6:
                tried += workload.transaction(pair, chance, schema_changes=schema_changes)
            else:
                tried += workload.group(pair, chance)
        if isinstance(pair, GroupedPair):
            pair.apply_waiting()
    finally:
        pair.close()
    leader, follower = (workload.contents(path) for path in pair.paths)
    assert {name for name in leader if leader[name] != follower.get(name)} == set()
    assert leader.keys() == follower.keys()
    return tried


@pytest.mark.parametrize("block", range(4))
def test_a_follower_holds_the_same_rows_rowids_counters_and_schema(block: int, tmp_path: Path) -> None:
    for seed in range(block * 10, block * 10 + examples(10)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert _run(folder, seed, 40, schema_changes=False) > 50


@pytest.mark.parametrize("block", range(4))
def test_a_follower_holds_the_same_when_the_schema_changes_between_statements(block: int, tmp_path: Path) -> None:
    for seed in range(block * 5, block * 5 + examples(5)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert _run(folder, seed, 30, schema_changes=True) > 20


@pytest.mark.parametrize("schema_changes", [False, True], ids=["rows", "schema"])
def test_a_follower_that_applies_several_batches_at_once_holds_the_same(schema_changes: bool, tmp_path: Path) -> None:
    for seed in range(100, 100 + examples(10)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert _run(folder, seed, 40, schema_changes=schema_changes, grouped=True) > 20
