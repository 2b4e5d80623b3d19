"""Errors as Spark shows them: short where the message says all, whole where this program is at fault."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Iterator

import pytest

from triplicate.errors import ConfigError, NoSuchLog
from triplicate.spark.change_feed import change_source
from triplicate.spark.core.plain_errors import plain_errors
from triplicate.spark.logs import batch_readers, streaming, writing
from triplicate.spark.logs.log_source import TriplicateDataSource
from triplicate.spark.tables import table_reading, table_source, table_writing


def deep(levels: int, error: Exception) -> None:
    if levels:
        deep(levels - 1, error)
    try:
        raise KeyError("an inner failure")
    except KeyError:
        raise error  # noqa: B904 - the inner failure is what must not be shown


@plain_errors("schema")
class Source:
    def schema(self, error: Exception) -> None:
        """Fails."""
        deep(10, error)


def shown(error: Exception) -> list[str]:
    with pytest.raises(type(error)) as caught:
        Source().schema(error)
    return "".join(traceback.format_exception(caught.value)).splitlines()


def test_the_message_of_an_error_of_ours_is_among_the_first_lines() -> None:
    lines = shown(NoSuchLog("no log 'nowhere'"))
    assert len(lines) <= 7
    assert lines[-1] == "triplicate.errors.NoSuchLog: no log 'nowhere'"
    assert not any("inner failure" in line for line in lines)


def test_a_fault_of_the_program_is_shown_with_its_way() -> None:
    assert sum("in deep" in line for line in shown(ZeroDivisionError("a fault"))) >= 3


def test_methods_keep_their_names_and_sources_are_pickled() -> None:
    assert (Source.schema.__name__, Source.schema.__doc__) == ("schema", "Fails.")
    source = pickle.loads(pickle.dumps(TriplicateDataSource({"metadataserviceuri": "u", "log": "a", "startingofsets": "0"})))
    with pytest.raises(ConfigError, match="did you mean") as caught:
        source.schema()
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 2


CALLED = {
    "schema", "reader", "streamReader", "writer", "streamWriter", "partitions", "read", "write", "commit", "abort", "initialOffset",
    "latestOffset", "prepareForTriggerAvailableNow",
}  # fmt: skip
"""The methods that Spark calls, and whose errors it shows."""
SILENT = {(streaming.LogStreamReader, "commit"), (change_source.ChangesStreamReader, "commit")}
"""They raise none."""


@pytest.mark.parametrize(
    "kind",
    [
        TriplicateDataSource, batch_readers.LogBatchReader, batch_readers.LedgerBatchReader, streaming.LogStreamReader,
        writing.BatchPublisher, writing.StreamPublisher, change_source.ChangesDataSource, change_source.ChangesReader,
        change_source.ChangesStreamReader, table_source.TableDataSource, table_reading.TableReader, table_writing.BatchTableWriter,
        table_writing.StreamTableWriter,
    ],
)  # fmt: skip
def test_each_method_that_spark_calls_shows_its_errors_plainly(kind: type) -> None:
    own = {name for base in kind.__mro__ if base.__module__.startswith("triplicate.") for name in vars(base)} & CALLED
    assert own
    assert {name for name in own if not hasattr(getattr(kind, name), "__wrapped__") and (kind, name) not in SILENT} == set()


@plain_errors("read")
class Rows:
    def read(self, error: Exception) -> Iterator[int]:
        yield 1
        deep(10, error)


def test_errors_of_rows_are_shown_plainly_after_the_rows_before() -> None:
    rows = Rows().read(NoSuchLog("no log 'nowhere'"))
    assert next(rows) == 1
    with pytest.raises(NoSuchLog) as caught:
        next(rows)
    assert "in deep" not in "".join(traceback.format_exception(caught.value))
