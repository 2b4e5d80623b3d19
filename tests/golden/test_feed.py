"""Logs of databases of earlier releases, read as change feeds: each row with the schema of its time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from triplicate.log import decode_entry
from triplicate.log.core.compression import Compressor
from triplicate.log.core.payload_encoder import columns_of, encode_columns
from triplicate.spark.change_feed.change_rows import ChangeBatches, row_columns
from triplicate.spark.change_feed.feed import FeedRequest, follow
from triplicate.spark.cluster.arrow import EntryRange
from triplicate.spark.core.change_offsets import ChangesOffset, decode_offset

FOLDER = Path(__file__).with_name("rowlog")
CHANGE = [("_change_type", pa.string()), ("_commit_version", pa.int64()), ("_seq", pa.int32())]


def entries_of(name: str) -> list[EntryRange]:
    """The batches of a sample as the first entries of a log."""
    sample = json.loads((FOLDER / name).read_text())
    found: list[EntryRange] = []
    first = 0
    for batch in sample if isinstance(sample, list) else [sample]:
        records = [bytes.fromhex(record) for record in batch["records"]]
        encoded = encode_columns(columns_of(records), Compressor("none"), preamble=bytes.fromhex(batch["preamble"]))
        found.append(EntryRange(decode_entry(encoded.payload(0, 1_000_000)), first, 0, len(records), 1, len(found)))
        first += len(records)
    return found


def feed(entries: list[EntryRange], table: str, anchor: int, *columns: tuple[str, pa.DataType]) -> list[dict[str, Any]]:
    """Every change of a table."""
    end = entries[-1].first_offset + entries[-1].high

    def read(low: int, high: int) -> Iterator[EntryRange]:
        return (entry for entry in entries if entry.first_offset < high and entry.first_offset + entry.high > low)

    schema = pa.schema([*columns, *CHANGE])
    followed = follow(read, FeedRequest("old", table, tuple(row_columns(schema.names)), anchor, True), 0, 0, end)
    assert followed is not None
    batches = ChangeBatches(followed.lineage, schema)
    made = [batch for entry in entries for batch in batches.add(entry)] + list(batches.finish())
    rows: list[dict[str, Any]] = pa.Table.from_batches(made, schema).to_pylist()
    return rows


@pytest.mark.parametrize("name", ["batch.json", "batch-with-time.json"])
def test_a_batch_of_either_header_is_read(name: str) -> None:
    rows = feed(entries_of(name), "Flights", 4, ("id", pa.int64()), ("carrier", pa.string()), ("delay", pa.float64()))
    assert [(row["_change_type"], row["id"], row["carrier"], row["_commit_version"], row["_seq"]) for row in rows] == [
        ("insert", 1, "UA", 0, 0),
        ("insert", 2, None, 0, 1),
        ("insert", 300, "ÅÄ", 0, 2),
        ("delete", 1, "UA", 1, 0),
        ("insert", 7, "AA", 1, 1),
        ("delete", 2, None, 1, 2),
        ("delete", 300, None, 1, 3),
    ]


def test_a_log_with_schema_changes_is_read() -> None:
    entries = entries_of("schema-changes.json")
    rows = feed(entries, "orders", 7, ("id", pa.int64()), ("title", pa.string()), ("qty", pa.int64()), ("_rowid", pa.int64()))
    assert [(row["_change_type"], row["id"], row["title"], row["qty"], row["_rowid"], row["_commit_version"]) for row in rows] == [
        ("insert", 1, "A", 7, 1, 3),
        ("insert", 2, "B", 7, 2, 3),
        ("update_postimage", 1, "A", 8, 1, 5),
        ("delete", 2, None, None, 2, 6),
        ("insert", 20, "B", 7, 20, 6),
        ("insert", 3, "C", 9, 3, 9),
    ]


def test_a_stored_offset_is_read_and_written_to_the_same_bytes() -> None:
    text = '{"logs": {"database.shop.0a": 17}, "named": 4, "schema": 3, "table": "orders", "v": 2}'
    offset = decode_offset(json.loads(text), "database.shop.0a", "x")
    assert offset == ChangesOffset(17, "orders", 4, 3)
    assert json.dumps(offset.encode("database.shop.0a")) == text
    first = decode_offset({"logs": {"database.shop.0a": 17}, "v": 1}, "database.shop.0a", "orders")
    assert first == ChangesOffset(17, "orders")
