"""From a database's transactions to the rows of a change feed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.spark.change_log import PEOPLE, PLACES, batch_of, deleted, inserted, updated
from triplicate.errors import ConfigError
from triplicate.log import decode_entry
from triplicate.log.core.compression import Compressor
from triplicate.log.core.payload_encoder import columns_of, encode_columns
from triplicate.spark.change_feed.change_rows import ChangeBatches, row_columns
from triplicate.spark.change_feed.lineage import ColumnEra, ColumnSource, Lineage
from triplicate.spark.cluster.arrow import BATCH_ROWS, EntryRange
from triplicate.spark.core.source_schema import changes_schema
from triplicate.sql import SchemaChange, SettingChange, TableShape
from triplicate.sql.core.records import Operation
from triplicate.sql.core.schema_changes import fold

CHANGE = [("_change_type", pa.string()), ("_commit_version", pa.int64()), ("_seq", pa.int32())]
OF_PEOPLE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("score", pa.float64()), *CHANGE])


def entry_of(*transactions: Sequence[Operation], first_offset: int = 50) -> EntryRange:
    preamble, records = batch_of(*transactions)
    payload = encode_columns(columns_of(records), Compressor("auto"), preamble=preamble).payload(0, 1_000_000)
    return EntryRange(decode_entry(payload), first_offset, 0, len(records), 1, 1)


def unchanged(table: str, schema: pa.Schema) -> Lineage:
    """A table that was never changed."""
    columns = tuple(row_columns(schema.names))
    return Lineage(table, columns, 100, False, (ColumnEra(-1, fold(table), tuple(map(ColumnSource, columns))),))


def feed(table: str, schema: pa.Schema, *entries: EntryRange) -> list[dict[str, Any]]:
    batches = ChangeBatches(unchanged(table, schema), schema)
    made = [batch for entry in entries for batch in batches.add(entry)] + list(batches.finish())
    rows: list[dict[str, Any]] = pa.Table.from_batches(made, schema).to_pylist()
    return rows


def test_every_kind_of_change_is_delivered_in_order() -> None:
    entry = entry_of(
        [inserted(PEOPLE, (1, "Ada", 1.5), (2, "Bob", None), rowids=[1, 2]), SchemaChange("CREATE INDEX i ON people(name)", bytes(16))],
        [updated(PEOPLE, (2, "Bea", 2.0), rowids=[2]), SettingChange("user_version", 3), deleted(PEOPLE, 1, rowids=[1])],
    )
    assert feed("people", OF_PEOPLE, entry) == [
        {"id": 1, "name": "Ada", "score": 1.5, "_change_type": "insert", "_commit_version": 50, "_seq": 0},
        {"id": 2, "name": "Bob", "score": None, "_change_type": "insert", "_commit_version": 50, "_seq": 1},
        {"id": 2, "name": "Bea", "score": 2.0, "_change_type": "update_postimage", "_commit_version": 51, "_seq": 0},
        {"id": 1, "name": None, "score": None, "_change_type": "delete", "_commit_version": 51, "_seq": 1},
    ]


def test_old_rows_are_delivered_where_the_table_logs_them() -> None:
    old = [(1, "Ada", 1.0), (2, "Bob", 2.0)]
    entry = entry_of(
        [updated(PEOPLE, (1, "Ada", 9.0), (2, "Bob", 9.0), rowids=[1, 2], old=old), deleted(PEOPLE, 1, rowids=[1], old=[(1, "Ada", 9.0)])]
    )
    rows = feed("people", OF_PEOPLE, entry)
    assert [(row["_change_type"], row["id"], row["score"], row["_seq"]) for row in rows] == [
        ("update_preimage", 1, 1.0, 0),
        ("update_preimage", 2, 2.0, 1),
        ("update_postimage", 1, 9.0, 0),
        ("update_postimage", 2, 9.0, 1),
        ("delete", 1, 9.0, 2),
    ]


def test_a_tables_name_is_found_in_any_case_and_rows_are_known_by_their_key() -> None:
    schema = pa.schema([("code", pa.string()), ("open", pa.bool_()), *CHANGE])
    entry = entry_of([inserted(PLACES, ("JFK", 1), ("LGA", 0))], [deleted(PLACES, 1, keys=[("JFK",)])])
    rows = feed("places", schema, entry)
    assert [(row["code"], row["open"], row["_change_type"]) for row in rows] == [
        ("JFK", True, "insert"),
        ("LGA", False, "insert"),
        ("JFK", None, "delete"),
    ]


def test_other_tables_and_other_transactions_are_left_out() -> None:
    entry = entry_of([inserted(PLACES, ("JFK", 1))], [inserted(PEOPLE, (1, "Ada", 1.0), rowids=[1])], [inserted(PLACES, ("LGA", 1))])
    assert [row["_commit_version"] for row in feed("people", OF_PEOPLE, entry)] == [51]
    part = EntryRange(entry.view, entry.first_offset, 2, 3, 1, 1)
    assert feed("people", OF_PEOPLE, part) == []


def test_a_column_that_the_table_never_had_is_refused() -> None:
    older = TableShape("people", ("id", "name"), ("INTEGER", "TEXT"), key=(0,), rowid_column=0)
    with pytest.raises(ConfigError, match="no column 'score'; it has 'id', 'name'"):
        feed("people", OF_PEOPLE, entry_of([inserted(older, (1, "Ada"), rowids=[1])]))


def test_only_the_columns_of_a_users_schema_are_made() -> None:
    schema = pa.schema([("_commit_timestamp", pa.timestamp("us", tz="UTC")), ("NAME", pa.string())])
    (row,) = feed("people", schema, entry_of([inserted(PEOPLE, (1, "Ada", 1.0), rowids=[1])]))
    assert row["NAME"] == "Ada"
    assert row["_commit_timestamp"].timestamp() == 1.0


def test_values_that_fit_their_columns_type_are_converted() -> None:
    entry = entry_of([inserted(PEOPLE, (1, 17, 3), (2, b"x", 2**53 + 1), rowids=[1, 2])])
    rows = feed("people", OF_PEOPLE, entry)
    assert [(row["name"], row["score"]) for row in rows] == [("17", 3.0), ("x", float(2**53 + 1))]


@pytest.mark.parametrize("value", ["three", b"\x00"])
def test_a_value_that_does_not_fit_its_column_is_refused_by_name(value: object) -> None:
    with pytest.raises(ConfigError, match="column 'score' holds"):
        feed("people", OF_PEOPLE, entry_of([inserted(PEOPLE, (1, "Ada", value), rowids=[1])]))


def test_large_transactions_are_handed_out_in_bounded_batches() -> None:
    rows = [(place, "x", 1.0) for place in range(BATCH_ROWS)]
    batches = ChangeBatches(unchanged("people", OF_PEOPLE), OF_PEOPLE)
    entry = entry_of([inserted(PEOPLE, *rows, rowids=list(range(BATCH_ROWS)))], [inserted(PEOPLE, (-1, "y", 1.0), rowids=[-1])])
    assert [batch.num_rows for batch in batches.add(entry)] == [BATCH_ROWS]
    assert [batch.num_rows for batch in batches.finish()] == [1]


def test_a_log_that_no_database_wrote_is_refused() -> None:
    payload = encode_columns(columns_of([b"x"]), Compressor("none")).payload(0, 1)
    with pytest.raises(ConfigError, match="no database wrote"):
        list(ChangeBatches(unchanged("people", OF_PEOPLE), OF_PEOPLE).add(EntryRange(decode_entry(payload), 0, 0, 1, 1, 1)))


def test_names_of_columns_are_quoted() -> None:
    assert changes_schema([("a`b c", "LONG")]).startswith("`a``b c` LONG, _change_type STRING")
