"""The row log's differential test: a leader runs random SQL, a follower applies its log, and both files must hold the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.examples import examples
from tests.property import rowlog_workload as workload
from triplicate.sql.core import batch_builder
from triplicate.sql.executor import change_capture, staged_parts
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


class InterruptedPair(workload.Pair):
    """A pair whose follower is interrupted between the parts of a transaction, and reads them again from its position.

    Args:
        chance: decides when.
    """

    def __init__(self, folder: Path, chance: random.Random) -> None:
        super().__init__(folder)
        self._chance = chance
        self._since: list[LogBatch] = []
        """Batches since the follower's position."""

    def deliver(self, batch: LogBatch) -> None:
        self._since.append(batch)
        follow(self.applier, [batch])
        if self.applier.position < batch.first_offset + len(batch.records):
            if self._chance.random() < 0.3:
                self.applier.rollback()
                follow(self.applier, self._since)
            elif self._chance.random() < 0.3:
                follow(self.applier, self._since)  # The reader begins again, the applier does not.
            return
        self._since.clear()


@pytest.mark.parametrize("schema_changes", [False, True], ids=["rows", "schema"])
def test_a_follower_of_transactions_in_parts_holds_the_same(schema_changes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces end within statements and between savepoints, parts within transactions, and followers are interrupted between parts."""
    monkeypatch.setattr(change_capture, "PIECE_BYTES", 250)
    monkeypatch.setattr(staged_parts, "PART_BYTES", 300)
    parts = 0
    for seed in range(200, 200 + examples(12)):
        monkeypatch.setattr(
            batch_builder, "MAX_ENTRY_BYTES", batch_builder.ENTRY_MARGIN_BYTES + random.Random(seed).choice((200, 900, 3000))
        )
        folder = tmp_path / str(seed)
        folder.mkdir()
        chance = random.Random(seed)
        pair = InterruptedPair(folder, random.Random(seed))
        try:
            pair.script(workload.SCHEMA)
            for _ in range(40):
                if schema_changes or chance.random() < 0.6:
                    workload.transaction(pair, chance, schema_changes=schema_changes)
                else:
                    workload.group(pair, chance)
            parts += pair.parts
        finally:
            pair.close()
        leader, follower = (workload.contents(path) for path in pair.paths)
        assert {name for name in leader if leader[name] != follower.get(name)} == set(), seed
    assert parts > 30
