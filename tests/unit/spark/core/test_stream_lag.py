"""How far a stream is behind, from the progress that Spark reports."""

from __future__ import annotations

import json

from tests.unit.spark.progress_rig import offset, progress
from triplicate.spark.core.change_offsets import ChangesOffset
from triplicate.spark.core.stream_lag import LogLag, lag_of


def test_the_lag_is_the_difference_of_the_latest_offset_and_the_end_for_each_log() -> None:
    both = progress((offset(a=(30, "x"), b=(5, "y")), offset(a=(100, "x"), b=(5, "y"))), name="copy")
    assert lag_of(both) == [
        LogLag("copy", "b2a5", 4, 0.679, 7.4, 0, "a", 30, "x", 70),
        LogLag("copy", "b2a5", 4, 0.679, 7.4, 0, "b", 5, "y", 0),
    ]


def test_a_query_without_a_name_is_known_by_its_id_and_sources_by_their_place() -> None:
    found = lag_of(progress((offset(a=(1, "x")), offset(a=(2, "x"))), (offset(a=(2, "x")), offset(a=(2, "x")))))
    assert [(row.query, row.source, row.records_behind) for row in found] == [("6a19", 0, 1), ("6a19", 1, 0)]


def test_only_what_is_known_is_counted() -> None:
    """The progress may have no latest offset; a log that was made again meanwhile has another end; and a log may be gone."""
    for latest in (None, offset(a=(90, "another")), offset(b=(90, "x"))):
        assert [row.records_behind for row in lag_of(progress((offset(a=(30, "x")), latest)))] == [None]


def test_the_last_progress_of_pyspark_4_1_has_offsets_as_python_prints_them() -> None:
    first, last = (str(json.loads(each)) for each in (offset(a=(30, "x")), offset(a=(100, "x"))))
    assert [(row.log, row.position, row.records_behind) for row in lag_of(progress((first, last)))] == [("a", 30, 70)]
    assert lag_of(progress(("[" * 10_000, None))) == []


def test_a_checkpoint_of_version_1_and_a_change_feed_have_no_ids() -> None:
    first, last = (json.dumps({"logs": {"a": number}, "v": 1}) for number in (3, 8))
    assert [(row.log, row.log_id, row.records_behind) for row in lag_of(progress((first, last)))] == [("a", None, 5)]
    first, last = (json.dumps(ChangesOffset(number, "orders", 2, 2, "declared").encode("db-1")) for number in (3, 8))
    assert [(row.log, row.log_id, row.records_behind) for row in lag_of(progress((first, last)))] == [("db-1", None, 5)]


def test_a_latest_offset_that_was_read_before_the_end_is_no_negative_lag() -> None:
    assert [row.records_behind for row in lag_of(progress((offset(a=(8, "x")), offset(a=(5, "x")))))] == [0]


def test_other_sources_have_no_rows() -> None:
    kafka = json.dumps({"topic": {"0": 23}})
    files = json.dumps({"logOffset": 3})
    assert (
        lag_of(progress((kafka, kafka), (files, files), ("17", "17"), ("no json", None), (None, None), ('{"v": 2, "logs": 3}', None))) == []
    )
    assert lag_of(progress()) == []
    assert lag_of(None) == []


def test_a_query_that_processed_nothing_has_no_rate() -> None:
    (row,) = lag_of(progress((offset(a=(8, "x")), None), processedRowsPerSecond=None, batchDuration=None))
    assert (row.rows_per_s, row.batch_s) == (0.0, 0.0)
