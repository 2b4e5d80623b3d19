"""Batch reads that are planned by the filters of their query."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import datasource as filters
from pyspark.sql import types

from tests.unit.spark.stand import LOG, Stand, stand
from triplicate.log import LogSettings
from triplicate.spark.core.log_options import log_read_options
from triplicate.spark.logs.batch_readers import FilteredLogBatchReader
from triplicate.spark.logs.log_source import TriplicateDataSource

VALUE = types.StructType([types.StructField("value", types.BinaryType())])
OFFSET, NAME = ("Offset",), ("log",)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand(monkeypatch) as made:
        made.loop.call(made.logs.create("other", LogSettings()))
        made.write(*([b"x"] * 10))
        made.write(*([b"y"] * 4), log="other")
        yield made


def planned(*given: filters.Filter, **options: str) -> list[tuple[Any, ...]]:
    read = log_read_options({"metadataserviceuri": "memory:", "subscribe": f"{LOG},other", **options})
    reader = FilteredLogBatchReader(read, VALUE)
    assert list(reader.pushFilters([*given])) == [*given], "Spark applies them again"
    return [part.value for part in pickle.loads(pickle.dumps(reader)).partitions()]


def test_offsets_bound_the_plan(cluster: Stand) -> None:
    assert planned(filters.GreaterThan(OFFSET, 2), filters.LessThanOrEqual(OFFSET, 6)) == [(LOG, 3, 7), ("other", 3, 4)]
    assert planned(filters.GreaterThanOrEqual(OFFSET, 2), filters.LessThan(OFFSET, 6)) == [(LOG, 2, 6), ("other", 2, 4)]
    assert planned(filters.EqualTo(OFFSET, 5)) == planned(filters.EqualNullSafe(OFFSET, 5)) == [(LOG, 5, 6)]
    assert planned(filters.In(OFFSET, (7, 1, 3))) == [(LOG, 1, 8), ("other", 1, 4)]
    assert planned(filters.GreaterThan(OFFSET, 99)) == planned(filters.LessThan(OFFSET, -1)) == []
    assert planned(filters.LessThan(OFFSET, 3), endingoffsets=f'{{"{LOG}": 2, "other": 4}}') == [(LOG, 0, 2), ("other", 0, 3)]


def test_names_choose_the_logs(cluster: Stand) -> None:
    assert planned(filters.EqualTo(NAME, "other")) == [("other", 0, 4)]
    assert planned(filters.In(NAME, ("other", "third"))) == [("other", 0, 4)]
    assert planned(filters.EqualTo(NAME, "other"), filters.In(NAME, (LOG,))) == []


@pytest.mark.parametrize(
    "given",
    [
        filters.Not(filters.EqualTo(OFFSET, 1)),
        filters.IsNotNull(OFFSET),
        filters.EqualTo(("value",), b"x"),
        filters.EqualTo(("headers", "offset"), 1),
        filters.GreaterThan(OFFSET, None),
        filters.In(OFFSET, ()),
        filters.GreaterThan(("timestamp",), 5),
        filters.StringStartsWith(NAME, "o"),
    ],
)
def test_other_filters_leave_the_plan_as_it_is(cluster: Stand, given: filters.Filter) -> None:
    assert planned(given) == [(LOG, 0, 10), ("other", 0, 4)]


def test_filters_are_taken_only_where_spark_pushes_them(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its setting off Spark refuses readers that take filters."""
    source = TriplicateDataSource({"metadataserviceuri": "memory:", "log": LOG})
    monkeypatch.delitem(sys.modules, "pyspark.sql.worker.data_source_pushdown_filters", raising=False)
    assert "pushFilters" not in vars(type(source.reader(VALUE)))
    monkeypatch.setitem(sys.modules, "pyspark.sql.worker.data_source_pushdown_filters", sys)
    assert "pushFilters" in vars(type(source.reader(VALUE)))
