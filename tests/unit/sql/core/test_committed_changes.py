"""The keys of committed changes: they name the row, so a copy that goes by them is the table."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.property.rowlog_workload import Pair
from triplicate.sql.core import batch_builder
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.committed_changes import ChangeType, CommittedChange, FeedEntry, transactions_in
from triplicate.sql.executor import change_capture, staged_parts
from triplicate.sql.executor.statement_batches import AutocommitRequest

KEYS = {
    "integer": ("id integer primary key, k integer, v text", ["id"]),
    "another integer": ("id int primary key, k integer, v text", ["id"]),
    "text": ("id text primary key, k integer, v text", ["id"]),
    "of two columns": ("id integer, k integer, v text, primary key(k, id)", ["k", "id"]),
    "behind a generated column": ("g text as (v || 'g') stored, id int primary key, k integer, v text", ["id"]),
    "none": ("id integer, k integer, v text", ["rowid"]),
}
KINDS = [(kind, end) for kind in KEYS for end in ("", " without rowid") if kind != "none" or not end]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    made.close()


def changes_of(pair: Pair, sql: str) -> list[CommittedChange]:
    """Run a statement in a batch of its own; its changes as a feed has them."""
    pending = pair.writer.run_batch([AutocommitRequest(pair.gate.examine(sql), ())])
    assert all(answer.error is None for answer in pending.answers), pending.answers
    entry = FeedEntry(0, 0, pending.records, pending.preamble, 0)
    pair.send(pending)
    found = transactions_in(entry, lambda table, version: True, wants_schema=False) if pending.records else iter(())
    return [change for transaction in found for change in transaction.changes]


def random_change(chance: random.Random) -> str:
    one, other, third = (chance.randrange(6) for _ in range(3))
    return chance.choice(
        [
            f"insert or ignore into t(id, k, v) values ({one}, {other}, 'a')",
            f"insert or replace into t(id, k, v) values ({one}, {other}, 'b')",
            f"update t set v = v || 'c' where id = {one}",
            "update t set v = v || 'd'",
            f"update or replace t set id = {one} where id = {other} and k <> {third}",
            f"update or replace t set id = id + 6, k = k where id < {one}",
            f"update or ignore t set k = {one} where id = {other}",
            f"update t set id = id, v = 'e' where k = {one}",
            f"delete from t where id = {one} or id > 11",
        ]
    )


@pytest.mark.parametrize("images", ["keys", "full"])
@pytest.mark.parametrize(("kind", "end"), KINDS)
def test_a_copy_that_goes_by_the_keys_is_the_table(pair: Pair, kind: str, end: str, images: str) -> None:
    columns, key = KEYS[kind]
    changes_of(pair, f"create table t({columns}){end}")
    changes_of(pair, f"alter table t set (change_images = {images})")
    chance, copy, updates = random.Random(7), dict[tuple[Value, ...], tuple[Value, ...]](), 0
    for _ in range(200):
        for change in changes_of(pair, random_change(chance)):
            assert change.key is not None
            assert list(change.key) == key
            known = tuple(change.key.values())
            if change.type is ChangeType.INSERT:
                assert known not in copy
            elif images == "full":
                assert change.old is not None
                assert copy[known] == tuple(change.old[name] for name in ("id", "k", "v"))
            if change.type is not ChangeType.INSERT:
                del copy[known]
                updates += change.type is ChangeType.UPDATE
            if change.new is not None:
                moved = known if key == ["rowid"] else tuple(change.new[name] for name in key)
                copy[moved] = tuple(change.new[name] for name in ("id", "k", "v"))
        rows = pair.reader.execute("select id, k, v from t").fetchall()
        assert sorted(copy.values()) == sorted(rows)
    assert updates > 50


def test_the_parts_of_a_large_transaction_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_capture, "PIECE_BYTES", 500)
    monkeypatch.setattr(staged_parts, "PART_BYTES", 500)
    monkeypatch.setattr(batch_builder, "MAX_ENTRY_BYTES", batch_builder.ENTRY_MARGIN_BYTES + 500)
    pair = Pair(tmp_path)
    pair.script("create table t(id integer primary key, v text)")
    pair.writer.begin()
    for sql in (
        "insert into t with recursive c(i) as (values(1) union all select i + 1 from c limit 90) select i, i from c",
        "delete from t",
    ):
        pair.writer.run(pair.gate.examine(sql), ())
    pending = pair.writer.finish([], "")
    assert pending.parts is not None
    entries = [
        FeedEntry(10 + index, 0, records, preamble, 5)
        for index, (preamble, records) in enumerate(pending.parts.read(index) for index in range(pending.count))
    ]
    pair.send(pending)
    pair.close()
    pieces = [piece for entry in entries for piece in transactions_in(entry, lambda table, version: True, wants_schema=True)]
    assert len({piece.transaction_id for piece in pieces}) == 1
    assert {piece.parts for piece in pieces} == {len(entries)}
    assert [piece.position for piece in pieces] == [10 + piece.part for piece in pieces]
    changes = [change for piece in pieces for change in piece.changes]
    assert [change.seq for change in changes] == list(range(180))
    assert [change.type for change in changes] == [ChangeType.INSERT] * 90 + [ChangeType.DELETE] * 90
