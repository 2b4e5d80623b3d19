"""Columns of tables in their declared types, from the log and from pages of a table's content."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from tests.unit.spark.feed_stand import Shop, Stream, own_columns, shop, struct_of
from triplicate.errors import ConfigError, SchemaChanged
from triplicate.spark.cluster import column_values
from triplicate.spark.cluster.column_values import column_of, columns_of_page, spark_type, type_of_result

naive = dt.datetime.fromisoformat
UTC = pa.timestamp("us", tz="UTC")
NTZ = pa.timestamp("us")
EVENTS = "create table e(id integer primary key, day date, at timestamp, seen timestamptz, price numeric(12,2), n numeric, t time, j json)"
ROW = "insert into e values({}, '2026-01-31', '2026-01-31 04:05:06', '2026-01-31 04:05:06.500000+00:00', 19.99, 2.5, '24:00:00', '[1]')"


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with shop(tmp_path, monkeypatch) as made:
        yield made


def refuse(row: int, value: Any) -> Exception:
    return ConfigError(f"{value!r} in row {row}")


@pytest.mark.parametrize(
    ("declared", "expected", "as_text"),
    [
        ("INTEGER", "LONG", "LONG"),
        ("smallint", "LONG", "LONG"),
        ("INTERVAL", "STRING", "STRING"),
        ("VARCHAR(10)", "STRING", "STRING"),
        ("TIMESTAMP", "TIMESTAMP_NTZ", "STRING"),
        ("DATETIME", "TIMESTAMP_NTZ", "STRING"),
        ("timestamptz", "TIMESTAMP_LTZ", "STRING"),
        ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP_LTZ", "STRING"),
        ("DATE", "DATE", "STRING"),
        ("TIME", "STRING", "STRING"),
        ("uuid", "STRING", "STRING"),
        ("jsonb", "STRING", "STRING"),
        ("DOUBLE PRECISION", "DOUBLE", "DOUBLE"),
        ("BOOLEAN", "BOOLEAN", "BOOLEAN"),
        ("bytea", "BINARY", "BINARY"),
        ("NUMERIC(10,2)", "DECIMAL(10,2)", "STRING"),
        ("decimal ( 38 , 38 )", "DECIMAL(38,38)", "STRING"),
        ("NUMERIC(5)", "DECIMAL(5,0)", "STRING"),
        ("NUMERIC", "STRING", "STRING"),
        ("NUMERIC(39,2)", "STRING", "STRING"),
        ("NUMERIC(2,4)", "STRING", "STRING"),
        ("NUMERIC(5,-2)", "STRING", "STRING"),
        ("", "STRING", "STRING"),
    ],
)
def test_declared_types_become_sparks(declared: str, expected: str, as_text: str) -> None:
    assert (spark_type(declared, texts=False), spark_type(declared, texts=True)) == (expected, as_text)


def test_a_feed_has_the_declared_types(db: Shop) -> None:
    db.must(EVENTS, ROW.format(1), "insert into e(id) values(2)", "insert into e(id, price, seen) values(3, -7, current_timestamp)")
    whole, nulls, third = db.batch("e")
    assert [whole[name] for name in ("day", "at", "seen", "price", "n", "t", "j")] == [
        dt.date(2026, 1, 31),
        naive("2026-01-31 04:05:06"),
        dt.datetime(2026, 1, 31, 4, 5, 6, 500_000, tzinfo=dt.UTC),
        Decimal("19.99"),
        "2.5",
        "24:00:00",
        "[1]",
    ]
    assert not any(nulls[name] for name in own_columns(struct_of(db.source("e").schema())) if name != "id")
    assert third["price"] == Decimal("-7.00")
    assert third["seen"].tzinfo is not None
    text = db.batch("e", columntypes="TEXT")[0]
    assert [text[name] for name in ("day", "at", "price")] == ["2026-01-31", "2026-01-31 04:05:06", "19.99"]
    with pytest.raises(ConfigError, match="option 'columnTypes' is declared or text, not 'typed'"):
        db.batch("e", columntypes="typed")


@pytest.mark.parametrize(
    ("kind", "stored", "expected"),
    [
        (NTZ, "0001-01-01 00:00:00", naive("0001-01-01 00:00:00")),
        (NTZ, "9999-12-31 23:59:59.999999", naive("9999-12-31 23:59:59.999999")),
        (NTZ, "2026-01-31T04:05:06Z", naive("2026-01-31 04:05:06")),
        (UTC, "2026-01-31 04:05:06", dt.datetime(2026, 1, 31, 4, 5, 6, tzinfo=dt.UTC)),
        (UTC, "2026-01-31 04:05:06+02:00", dt.datetime(2026, 1, 31, 2, 5, 6, tzinfo=dt.UTC)),
        (pa.date32(), "9999-12-31", dt.date(9999, 12, 31)),
        (pa.decimal128(10, 2), 0.07, Decimal("0.07")),
        (pa.decimal128(10, 2), "12345678.90", Decimal("12345678.90")),
        (pa.decimal128(18, 0), 2**53 + 1, Decimal(2**53 + 1)),
        (pa.decimal128(19, 2), 12345678901234567, Decimal("12345678901234567.00")),
        (pa.decimal128(38, 30), 1e-30, Decimal("1e-30")),
        (pa.bool_(), 1, True),
        (pa.int32(), 7.0, 7),
    ],
)
def test_a_value_that_fits_is_the_same_alone_and_among_others(kind: pa.DataType, stored: Any, expected: Any) -> None:
    """A column is converted as a whole where it can be, and each value by itself where it cannot."""
    for values in ([stored], [None, stored, None]):
        assert column_of(kind, values, refuse).to_pylist() == [value and expected for value in values]


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (pa.date32(), "infinity"),
        (pa.date32(), "10000-01-01"),
        (pa.date32(), "2026-01-31 00:00:00"),
        (pa.date32(), "0044-03-15 BC"),
        (pa.date32(), 20260131),
        (NTZ, "2026-01-31 04:05:06+02:00"),
        (NTZ, "2026-01-31 04:05:06.1234567"),
        (NTZ, 1.5),
        (UTC, "-infinity"),
        (UTC, "tomorrow"),
        (pa.decimal128(4, 2), 1.234),
        (pa.decimal128(4, 2), 100),
        (pa.decimal128(4, 2), 99.995),
        (pa.decimal128(4, 2), float("inf")),
        (pa.decimal128(4, 2), "NaN"),
        (pa.decimal128(4, 2), b"1"),
        (pa.int32(), 2**40),
        (pa.int64(), 1.5),
        (pa.bool_(), 2),
        (pa.float64(), "three"),
        (pa.string(), b"\xff"),
    ],
)
def test_a_value_that_does_not_fit_is_named(kind: pa.DataType, stored: Any) -> None:
    with pytest.raises(ConfigError, match="in row 2"):
        column_of(kind, [None, None, stored], refuse)


def test_columns_in_their_stored_forms_are_converted_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(column_values, "_fitting")
    column_of(UTC, ["2026-01-31 04:05:06+00:00", "2026-01-31 04:05:06.500000+00:00", "2026-01-31 04:05:06"], refuse)
    column_of(NTZ, ["2026-01-31 04:05:06", "2026-01-31 04:05:06.500000"], refuse)
    column_of(pa.date32(), ["2026-01-31", None], refuse)
    cents = [number / 100 for number in range(-100_000, 100_000)]
    assert column_of(pa.decimal128(15, 2), [*cents, 7], refuse).to_pylist()[::1000] == [
        Decimal(number).scaleb(-2) for number in [*range(-100_000, 100_000), 700][::1000]
    ]


def test_a_stored_value_that_does_not_fit_is_named_with_its_version(db: Shop) -> None:
    """A database of an earlier release may hold any value; a column of a type that the database does not check stands for it here."""
    db.must(
        "create table t(id integer primary key, day anything)", "insert into t values(1, '2026-01-31')", "insert into t values(2, 'soon')"
    )
    db.must("insert into t values(3, '2026-02-01')")
    wanted = struct_of("`id` LONG, `day` DATE")
    with pytest.raises(
        ConfigError, match=r"table 't': column 'day' holds 'soon' at version 2, which is not of type date32.*schema of your own"
    ):
        db.batch("t", struct_of("`id` LONG, `day` DATE, _commit_version LONG, _seq INT"))
    with pytest.raises(ConfigError, match="at version 2"):
        db.batch("t", wanted)
    own = StructType([*struct_of("_commit_version LONG, _seq INT, _change_type STRING").fields, StructField("day", StringType())])
    assert [row["day"] for row in db.batch("t", own)] == ["2026-01-31", "soon", "2026-02-01"]


def test_a_stream_of_an_earlier_release_goes_on_with_strings_or_says_so(db: Shop) -> None:
    """Its sink may hold strings: files of one column in two types would be unreadable."""
    db.must(EVENTS, ROW.format(1))
    stream = Stream(db, "e")
    stream.checkpoint = {"logs": {"shop-log": 2}, "named": 1, "schema": 1, "table": "e", "v": 2}
    for _ in range(2):
        with pytest.raises(SchemaChanged, match=r"column 'day' may have been a string up to version 2, and is date now.*columnTypes=text"):
            stream.trigger()
        db.must(ROW.format(2)) if db.end == 2 else None
    stream.given = {"columntypes": "text"}
    stream.start()
    assert [row["day"] for row in stream.trigger()] == ["2026-01-31"]
    assert stream.checkpoint == {"logs": {"shop-log": 3}, "named": 1, "schema": 1, "table": "e", "v": 2}
    stream.given = {"columntypes": "declared"}
    stream.start()
    db.must(ROW.format(3))
    assert [row["day"] for row in stream.trigger()] == [dt.date(2026, 1, 31)]
    stream.given = {}
    stream.start()
    db.must(ROW.format(4))
    assert [row["day"] for row in stream.trigger()] == [dt.date(2026, 1, 31)]


def test_a_batch_that_an_earlier_release_planned_is_not_read_in_other_types(db: Shop) -> None:
    db.must(EVENTS, ROW.format(1), ROW.format(2))
    old = {"named": 1, "schema": 1, "table": "e", "v": 2}
    reader = Stream(db, "e").start()
    with pytest.raises(SchemaChanged, match="columnTypes"):
        reader.partitions({"logs": {"shop-log": 2}, **old}, {"logs": {"shop-log": 3}, **old})


def test_a_stream_without_such_columns_goes_on(db: Shop) -> None:
    db.must("create table t(id integer primary key, name text)", "insert into t values(1, 'A')")
    stream = Stream(db, "t")
    stream.checkpoint = {"logs": {"shop-log": 1}, "named": 1, "schema": 1, "table": "t", "v": 2}
    assert [row["id"] for row in stream.trigger()] == [1]
    assert stream.checkpoint["types"] == "declared"


PAGES: list[tuple[pa.DataType, bytes, list[Any]]] = [
    (pa.int64(), b"1\nNULL\n-9223372036854775808", [1, None, -(2**63)]),
    (pa.string(), b"''\nNULL\n'NULL'\n'it''s, a\r\n\"line\"'", ["", None, "NULL", 'it\'s, a\r\n"line"']),
    (pa.string(), b"5\n1.5", ["5", "1.5"]),
    (pa.float64(), b"1.5\n-0.1\n1.0e+300\n9.0e+999\n3", [1.5, -0.1, 1e300, float("inf"), 3.0]),
    (pa.bool_(), b"0\n1\nNULL", [False, True, None]),
    (pa.decimal128(10, 2), b"10.5\n-3\nNULL\n0.01", [Decimal("10.50"), Decimal("-3.00"), None, Decimal("0.01")]),
    (pa.date32(), b"'2026-01-31'\nNULL", [dt.date(2026, 1, 31), None]),
    (NTZ, b"'2026-01-31 04:05:06.5'\n'2026-01-31 04:05:06'", [naive("2026-01-31 04:05:06.5"), naive("2026-01-31 04:05:06")]),
    (UTC, b"'2026-01-31 04:05:06.5+00:00'", [dt.datetime(2026, 1, 31, 4, 5, 6, 500_000, dt.UTC)]),
    (pa.int32(), b"7", [7]),
]


@pytest.mark.parametrize(("kind", "text", "expected"), PAGES)
def test_a_page_is_read_as_a_whole(kind: pa.DataType, text: bytes, expected: list[Any]) -> None:
    (column,) = columns_of_page(pa.schema([("c", kind)]), len(expected), text)
    assert column.type == kind
    assert column.to_pylist() == expected


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.int64(), b"1.5"),
        (pa.int64(), b"'1 x'"),
        (pa.int32(), b"5000000000"),
        (pa.bool_(), b"2"),
        (pa.string(), b"X'41'"),
        (pa.string(), b"'a'\nX'41'"),
        (pa.string(), b"'a,X''b'"),
        (pa.decimal128(5, 2), b"0.001"),
        (pa.date32(), b"'noon'"),
        (NTZ, b"'infinity'"),
    ],
)
def test_a_value_without_the_stored_form_of_its_type_is_left_to_the_slower_way(kind: pa.DataType, text: bytes) -> None:
    with pytest.raises((ValueError, TypeError, ArithmeticError)):
        columns_of_page(pa.schema([("c", kind)]), text.count(b"\n") + 1, text)


def test_a_page_with_another_number_of_lines_is_left_to_the_slower_way() -> None:
    with pytest.raises(ValueError, match="the page has 2 lines, of 3 rows"):
        columns_of_page(pa.schema([("c", pa.int64())]), 3, b"1\n2")


def test_results_have_the_types_of_their_oids() -> None:
    assert [type_of_result(oid, 0, 0) for oid in (16, 17, 20, 23, 701, 1082, 1114, 1184, 25, 2950, 1700)] == [
        "BOOLEAN", "BINARY", "LONG", "LONG", "DOUBLE", "DATE", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "STRING", "STRING", "STRING",
    ]  # fmt: skip
    assert type_of_result(1700, 10, 2) == "DECIMAL(10,2)"
    assert type_of_result(1700, 39, 2) == "STRING"
