"""From Arrow to entries and back, without touching records."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types

from triplicate.errors import ConfigError, RecordTooLarge
from triplicate.log import ENTRY_TARGET_BYTES, Columns, EntryView, decode_entry
from triplicate.log.core.compression import Compressor
from triplicate.log.core.payload_encoder import columns_of, encode_columns
from triplicate.spark.cluster.arrow import BATCH_ROWS, RECORD_LIMIT_BYTES, EntryRange, entries_of, record_batches
from triplicate.spark.core.column_checks import READABLE, check_readable, check_writable, plain

UTC = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [pa.field("log", pa.string(), nullable=False), ("offset", pa.int64()), ("timestamp", UTC), ("key", pa.binary()), ("value", pa.binary())]
)
HEADERS_KIND = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
HEADERS = pa.schema([("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))])
NOW_US = 1_700_000_000_000_000


def view_of(columns: Columns, codec: str = "none", wall_time_us: int = 5) -> EntryView:
    return decode_entry(encode_columns(columns, Compressor(codec)).payload(0, wall_time_us))


def range_of(view: EntryView, low: int = 0, high: int | None = None, first_offset: int = 100) -> EntryRange:
    return EntryRange(view, first_offset, low, view.count if high is None else high, 7, 3)


def through(batch: pa.RecordBatch, codec: str = "none") -> pa.Table:
    """Write a batch into entries and read them again."""
    offset, ranges = 0, []
    for columns in entries_of(batch, NOW_US):
        view = view_of(columns, codec)
        ranges.append(range_of(view, first_offset=offset))
        offset += view.count
    return pa.Table.from_batches(list(record_batches("events", ranges, SCHEMA)), SCHEMA)


def test_records_come_back_as_they_were_written() -> None:
    times = [dt.datetime(2013, 1, 1, tzinfo=dt.UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC), None]
    batch = pa.record_batch(
        {"value": pa.array(["ä", "", "c"]), "key": pa.array([None, b"k", b""]), "timestamp": pa.array(times, pa.timestamp("us"))}
    )
    table = through(batch)
    assert table["value"].to_pylist() == ["ä".encode(), b"", b"c"]
    assert table["key"].to_pylist() == [None, b"k", b""]
    now = dt.datetime.fromtimestamp(NOW_US / 1e6, dt.UTC)
    assert table["timestamp"].to_pylist() == [times[0], times[1], now], "a null time is the time of writing"
    assert table["offset"].to_pylist() == [0, 1, 2]
    assert table["log"].to_pylist() == ["events"] * 3


@given(
    st.lists(st.tuples(st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=5)), min_size=1, max_size=40),
    st.data(),
    st.sampled_from(["none", "zstd"]),
)
def test_any_slice_of_a_batch_round_trips(records: list[tuple[bytes | None, bytes | None]], data: st.DataObject, codec: str) -> None:
    low = data.draw(st.integers(0, len(records) - 1))
    high = data.draw(st.integers(low + 1, len(records)))
    batch = pa.record_batch(
        {"value": pa.array([v for v, _ in records], pa.binary()), "key": pa.array([k for _, k in records], pa.binary())}
    )
    table = through(batch.slice(low, high - low), codec)
    assert list(zip(table["value"].to_pylist(), table["key"].to_pylist(), strict=True)) == records[low:high]


@given(st.integers(1, 60), st.data())
def test_any_part_of_an_entry_can_be_delivered(count: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(0, count - 1))
    high = data.draw(st.integers(low + 1, count))
    values = [None if place % 5 == 3 else b"v%d" % place for place in range(count)]
    keys = [None if place % 2 else b"k%d" % place for place in range(count)]
    view = view_of(columns_of(values, keys=keys, timestamps_us=list(range(count))))
    (batch,) = record_batches("events", [range_of(view, low, high)], SCHEMA)
    assert batch.schema == SCHEMA
    assert batch["value"].to_pylist() == values[low:high]
    assert batch["key"].to_pylist() == keys[low:high]
    assert batch["offset"].to_pylist() == list(range(100 + low, 100 + high))
    assert batch["timestamp"].cast(pa.int64()).to_pylist() == list(range(low, high))


def test_records_without_times_have_their_entrys() -> None:
    (batch,) = record_batches("events", [range_of(view_of(columns_of([b"a", b"b"]), wall_time_us=17))], SCHEMA)
    assert batch["timestamp"].cast(pa.int64()).to_pylist() == [17, 17]
    assert batch["key"].to_pylist() == [None, None]


def test_headers_come_back_in_order_and_are_null_without_any() -> None:
    headers = [[("a", b"1"), ("a", None)], []]
    with_headers = range_of(view_of(columns_of([b"x", b"y"], headers=headers)))
    without = range_of(view_of(columns_of([b"z"])))
    (batch,) = record_batches("events", [with_headers, without], HEADERS)
    assert batch["headers"].to_pylist() == [[{"key": "a", "value": b"1"}, {"key": "a", "value": None}], [], None]


RECORD_HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=3)


@settings(deadline=None)  # The first example loads Arrow's functions.
@given(st.lists(RECORD_HEADERS, min_size=1, max_size=12), st.data())
def test_any_headers_are_written_as_records_of_a_log_have_them(
    records: list[list[tuple[str, bytes | None]] | None], data: st.DataObject
) -> None:
    low = data.draw(st.integers(0, len(records) - 1))
    high = data.draw(st.integers(low + 1, len(records)))
    column = pa.array([None if item is None else [{"key": k, "value": v} for k, v in item] for item in records], HEADERS_KIND)
    values = pa.array([b"v"] * len(records), pa.binary())
    (columns,) = entries_of(pa.record_batch({"value": values, "Headers": column}).slice(low, high - low), NOW_US)
    view, cut = view_of(columns), records[low:high]
    if all(item is None for item in cut):
        assert view.headers() is None
    else:
        expected = columns_of([b"v"] * len(cut), headers=[item or [] for item in cut])
        assert (columns.header_offsets, columns.header_data) == (expected.header_offsets, expected.header_data)
        assert view.headers() == [tuple(item or ()) for item in cut]


def test_a_header_without_a_key_or_with_too_long_a_key_is_refused() -> None:
    def write(headers: object) -> None:
        list(entries_of(pa.record_batch({"value": pa.array([b"v"], pa.binary()), "headers": pa.array([headers], HEADERS_KIND)}), NOW_US))

    write([{"key": "k" * 0xFFFF, "value": None}])
    with pytest.raises(ConfigError, match="has no key"):
        write([{"key": None, "value": b"1"}])
    with pytest.raises(ConfigError, match="has no key"):
        write([None])
    with pytest.raises(RecordTooLarge, match="at most 65535"):
        write([{"key": "k" * 0x10000, "value": None}])


def test_the_limit_of_a_record_is_what_can_be_written() -> None:
    def write(size: int, headers: object = None) -> list[Columns]:
        columns = {"value": pa.array([bytes(size)], pa.binary()), "key": pa.array([b"key"]), "headers": pa.array([headers], HEADERS_KIND)}
        return list(entries_of(pa.record_batch(columns), NOW_US))

    header = [{"key": "name", "value": b"value"}]
    rest = RECORD_LIMIT_BYTES - len(b"key") - len(b"name") - len(b"value") - 6
    (columns,) = write(rest, header)
    assert view_of(columns).count == 1
    with pytest.raises(RecordTooLarge, match=f"at most {RECORD_LIMIT_BYTES} together"):
        write(rest + 1, header)
    assert len(write(RECORD_LIMIT_BYTES - len(b"key"))) == 1


def test_the_documentation_has_the_limit_of_a_record() -> None:
    assert f"{RECORD_LIMIT_BYTES:,} bytes" in (Path(__file__).parents[4] / "docs" / "spark.md").read_text(encoding="utf-8")


def test_columns_are_written_and_read_in_any_case_of_their_names() -> None:
    batch = pa.record_batch({"VALUE": pa.array([b"v"], pa.binary()), "Key": pa.array([b"k"], pa.binary())})
    (columns,) = entries_of(batch, NOW_US)
    (read,) = record_batches("events", [range_of(view_of(columns))], pa.schema([("OFFSET", pa.int64()), ("Value", pa.binary())]))
    assert read.to_pylist() == [{"OFFSET": 100, "Value": b"v"}]


def test_what_the_log_fills_is_not_written_from_a_table() -> None:
    def write(**columns: list[object]) -> list[Columns]:
        kinds = {"log": pa.string(), "offset": pa.int64(), "key": pa.binary(), "value": pa.binary()}
        return list(entries_of(pa.record_batch({name: pa.array(columns[name], kinds[name]) for name in columns}), NOW_US))

    assert len(write(log=[None], offset=[None], key=[None], value=[b"v"])) == 1
    with pytest.raises(ConfigError, match=r"column 'log' is filled by the log .*INSERT INTO t \(key, value\)"):
        write(log=[None, "events"], offset=[None, None], key=[None, None], value=[b"v", b"v"])
    with pytest.raises(ConfigError, match="column 'offset' is filled by the log"):
        write(log=[None], offset=[7], key=[None], value=[b"v"])
    with pytest.raises(ConfigError, match="neither key nor value"):
        write(log=[None, None], offset=[None, None], key=[None, None], value=[b"v", None])


def test_only_the_columns_asked_for_are_made() -> None:
    schema = pa.schema([("_entry_id", pa.int64()), ("value", pa.string()), ("_ledger_id", pa.int64())])
    (batch,) = record_batches("events", [range_of(view_of(columns_of(["ä".encode()])))], schema)
    assert batch.to_pylist() == [{"_entry_id": 3, "value": "ä", "_ledger_id": 7}]


def test_a_value_that_is_no_text_is_refused_where_text_was_asked_for() -> None:
    with pytest.raises(ConfigError, match="read it as binary"):
        list(record_batches("events", [range_of(view_of(columns_of([b"\xff"])))], pa.schema([("value", pa.string())])))


def test_small_entries_are_joined_and_large_ones_are_cut() -> None:
    small = [range_of(view_of(columns_of([b"x"])), first_offset=place) for place in range(100)]
    assert [batch.num_rows for batch in record_batches("events", small, SCHEMA)] == [100]
    many = range_of(view_of(columns_of([b""] * (2 * BATCH_ROWS + 1))))
    assert [batch.num_rows for batch in record_batches("events", [many], SCHEMA)] == [BATCH_ROWS, BATCH_ROWS, 1]
    large = [range_of(view_of(columns_of([bytes(3 * 1024 * 1024)])), first_offset=place) for place in range(3)]
    assert [batch.num_rows for batch in record_batches("events", large, SCHEMA)] == [2, 1]


def test_a_batch_is_cut_into_entries_of_the_target_size() -> None:
    values = [bytes(1000)] * 5000
    entries = list(entries_of(pa.record_batch({"value": pa.array(values, pa.binary())}), NOW_US))
    assert sum(columns.count for columns in entries) == 5000
    sizes = [len(columns.value_data) for columns in entries]
    assert all(ENTRY_TARGET_BYTES * 0.9 < size < ENTRY_TARGET_BYTES for size in sizes[:-1])


def test_a_record_larger_than_the_target_has_an_entry_of_its_own_up_to_the_limit() -> None:
    limit = 4 * 1024 * 1024
    values = [b"a", bytes(limit - 300), b"b"]
    entries = list(entries_of(pa.record_batch({"value": pa.array(values, pa.binary())}), NOW_US))
    assert [columns.count for columns in entries] == [1, 1, 1]
    assert view_of(entries[1]).values() == [values[1]]
    with pytest.raises(RecordTooLarge, match="row 1 of a batch"):
        list(entries_of(pa.record_batch({"value": pa.array([b"a", bytes(limit)], pa.binary())}), NOW_US))


def test_an_empty_batch_makes_no_entry() -> None:
    assert list(entries_of(pa.record_batch({"value": pa.array([], pa.binary())}), NOW_US)) == []


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ([], "'value' .* is needed to write; there are none"),
        ([("key", "binary")], "there are key"),
        ([("value", "int")], "must be binary or string, not int"),
        ([("value", "binary"), ("topic", "string")], "columns of a record are value, key, timestamp, headers"),
        ([("value", "binary"), ("timestamp", "bigint")], "'timestamp' must be timestamp, not bigint"),
        ([("value", "binary"), ("value", "string")], "several columns"),
        ([("value", "binary"), ("VALUE", "binary")], "several columns 'value'"),
        ([("value", "binary"), ("headers", "map<string,string>")], "must be array<struct<key:string,value:binary>>"),
        ([("value", "binary"), ("log", "int")], "column 'log' must be string, not int"),
        ([("value", "binary"), ("topic", "string")], "the option or a column 'log' names the log"),
        ([("value", "binary"), ("offset", "bigint")], "column 'offset' cannot be written"),
        ([("value", "binary"), ("timestamp", "timestamp_ntz")], r"not timestamp_ntz; cast it .*CAST\(timestamp AS TIMESTAMP\)"),
    ],
)
def test_columns_that_cannot_be_written_are_refused(columns: list[tuple[str, str]], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        check_writable(columns)


def test_columns_are_known_in_any_case_and_texts_of_any_kind() -> None:
    check_writable([("Value", "varchar(10)"), ("KEY", "char(3)"), ("Headers", "array<struct<key:string,value:binary>>")])
    check_writable([("log", "string"), ("offset", "bigint"), ("value", "string collate UNICODE")], into_table=True)
    check_readable([("OFFSET", "bigint"), ("value", "varchar(10)")], READABLE)
    wanted = types.StructType(
        [types.StructField("Value", types.VarcharType(10), metadata={"a": "b"}), types.StructField("k", types.CharType(2))]
    )
    assert plain(wanted) == types.StructType([types.StructField("Value", types.StringType()), types.StructField("k", types.StringType())])
    assert all(not field.metadata for field in plain(wanted).fields)


@pytest.mark.parametrize("columns", [[("payload", "binary")], [("offset", "int")], [("offset", "bigint"), ("OFFSET", "bigint")]])
def test_a_schema_that_cannot_be_read_is_refused(columns: list[Any]) -> None:
    with pytest.raises(ConfigError, match=columns[0][0]):
        check_readable(columns, READABLE)
