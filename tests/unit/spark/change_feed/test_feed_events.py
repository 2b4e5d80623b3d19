"""Schema events that a stream delivers twice, because two queries ended one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.spark.feed_stand import Mirror, PartOfEventsApplied, Row, Shop, Stream, same, shop


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with shop(tmp_path, monkeypatch) as made:
        yield made


def after_two_crashes(db: Shop, *between: str) -> tuple[Mirror, Stream]:
    """A stream whose query has read a batch planned by an earlier query, in newer columns, and has ended before its next batch.

    Args:
        between: schema changes after the batch was planned.
    """
    db.must("create table t(id integer primary key, a text, b text)", "insert into t values(1, 'A', 'B')")
    mirror, stream = Mirror(), Stream(db, "t", schemaevents="deliver")
    mirror.apply(stream.trigger(), ["id", "a", "b"], ["id"])
    db.must("insert into t values(2, 'A', 'B')")
    stream.plan()
    db.must("alter table t rename a to c", "alter table t rename b to a", "alter table t rename c to b", *between)
    stream.start()
    mirror.apply(stream.trigger(), ["id", "b", "a"], ["id"])
    return mirror, stream


def led(changes: list[Row]) -> set[tuple[int, int]]:
    """The schema versions between which the events of a batch lead."""
    return {tuple(json.loads(row["_schema_change"])["schema_versions"]) for row in changes if row["_schema_change"] is not None}


def test_events_that_come_again_after_two_crashes_are_known_by_their_schema_versions(db: Shop) -> None:
    db.must("create table t(id integer primary key, a text, b text)", "insert into t values(1, 'A', 'B')")
    mirror, stream = Mirror(), Stream(db, "t", schemaevents="deliver")
    mirror.apply(stream.trigger(), ["id", "a", "b"], ["id"])
    db.must("insert into t values(2, 'A', 'B')")
    stream.plan()
    db.must(
        "alter table t rename a to c", "alter table t rename b to a", "alter table t rename c to b", "insert into t values(3, 'B', 'A')"
    )
    for rows in (1, 1):
        stream.start()
        changes = stream.trigger()
        assert [row["_change_type"] for row in changes] == ["rename_column", "rename_column", *["insert"] * rows]
        mirror.apply(changes, ["id", "b", "a"], ["id"])
    assert same(mirror.rows, db.rows("t", ["id", "b", "a"]))


def test_events_that_come_again_lead_to_the_same_version_whatever_happened_to_other_tables(db: Shop) -> None:
    mirror, stream = after_two_crashes(db, "create table u(x)", "create index i on t(a)")
    assert mirror.schema_version == 4, "the creation of the other table is not an event"
    db.must("drop table u", "analyze", "alter table t add n text", "insert into t values(3, 'B', 'A', 'N')")
    stream.start()
    changes = stream.trigger()
    assert led(changes) == {(1, 4)}
    mirror.apply(changes, ["id", "b", "a", "n"], ["id"])
    assert same(mirror.rows, db.rows("t", ["id", "b", "a", "n"]))


def test_events_of_which_a_consumer_has_a_part_are_known_by_their_schema_versions(db: Shop) -> None:
    mirror, stream = after_two_crashes(db)
    db.must("alter table t add d integer default 7", "insert into t values(3, 'B', 'A', 8)")
    stream.start()
    changes = stream.trigger()
    assert led(changes) == {(1, 5)}
    with pytest.raises(PartOfEventsApplied):
        mirror.apply(changes, ["id", "b", "a", "d"], ["id"])
