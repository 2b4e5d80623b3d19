"""The numbers, places and times of a leader's batches."""

from __future__ import annotations

import pytest

from triplicate.sql.core.batch_sequence import BatchSequence
from triplicate.sql.core.schema_versions import SchemaVersion, SchemaVersions
from triplicate.sql.core.table_shape import TableShape

DATABASE = b"d" * 16


def sequence(*, batch: int = 0, position: int = 0, time_ms: int = 0, keep_ms: int = 1000) -> BatchSequence:
    return BatchSequence(DATABASE, 7, batch, position, time_ms, keep_ms)


def test_the_first_batch_of_an_epoch_is_number_1_and_others_follow_the_last_one() -> None:
    assert sequence().next_batch == 1
    assert sequence(batch=41).next_batch == 42


def test_a_sent_batch_moves_the_number_and_its_commit_the_position() -> None:
    found = sequence(batch=3, position=10)
    found.send(14)
    assert (found.next_batch, found.sent_position, found.position) == (5, 14, 10)
    found.send(15)
    assert (found.next_batch, found.sent_position, found.position) == (6, 15, 10)
    found.commit()
    assert (found.next_batch, found.sent_position, found.position) == (6, 15, 15)


@pytest.mark.parametrize("end", [9, 10])
def test_a_batch_without_records_is_an_error_and_changes_nothing(end: int) -> None:
    found = sequence(batch=3, position=10)
    with pytest.raises(AssertionError):
        found.send(end)
    assert (found.next_batch, found.sent_position) == (4, 10)


def test_the_time_follows_the_wall_clock_and_never_goes_back() -> None:
    found = sequence(time_ms=5_000)
    times = []
    for wall_ms in (4_000, 6_000, 5_500, 6_001):
        found.begin(wall_ms)
        times.append(found.time_ms)
    assert times == [5_000, 6_000, 6_000, 6_001]


@pytest.mark.parametrize("wall_ms", [0, -5])
def test_a_batch_has_a_time_also_by_a_clock_before_the_epoch(wall_ms: int) -> None:
    found = sequence()
    found.begin(wall_ms)
    assert found.time_ms == 1


def test_results_are_forgotten_by_the_time_of_the_log_and_not_by_the_wall_clock() -> None:
    found = sequence(time_ms=5_000, keep_ms=1_000)
    assert found.forget_before_ms == 4_000
    found.begin(4_200)
    assert found.forget_before_ms == 4_000
    found.begin(9_000)
    assert found.forget_before_ms == 8_000


def test_nothing_is_forgotten_while_the_log_is_younger_than_results_are_kept() -> None:
    assert sequence(time_ms=300, keep_ms=1_000).forget_before_ms == 0


def test_a_header_names_the_schema_before_and_after_the_batch() -> None:
    found = sequence(batch=3, position=10, time_ms=5_000, keep_ms=1_000)
    schema = SchemaVersions(SchemaVersion(8, b"before"))
    schema.change(b"after")
    tables = (TableShape("t", ("a",), ("",)),)
    header = found.header(schema, tables)
    assert (header.database, header.epoch, header.batch, header.tables) == (DATABASE, 7, 4, tables)
    assert (header.schema_version_before, header.digest_before) == (8, b"before")
    assert (header.schema_version_after, header.digest_after) == (9, b"after")
    assert (header.time_ms, header.forget_before_ms) == (5_000, 4_000)
    assert (found.next_batch, found.position) == (4, 10), "a header alone sends nothing"
