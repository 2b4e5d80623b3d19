"""The row log's bytes: every value of SQLite round-trips, and damage is refused or harmless."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.errors import FormatError
from triplicate.sql import (
    BatchHeader,
    RowKind,
    RowRun,
    SchemaChange,
    SettingChange,
    StatementResult,
    TableShape,
    Transaction,
    decode_header,
    decode_transaction,
)
from triplicate.sql.core.column_codec import Value, decode_column, decode_columns, encode_column, encode_single_values
from triplicate.sql.core.records import Operation, TableDictionary, decode_joined, encode_header, encode_transaction

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
REAL = st.floats(allow_nan=False)
VALUES = st.one_of(st.none(), INT64, st.integers(-200, 200), REAL, TEXT, st.binary(max_size=20))
COLUMNS = st.one_of(
    st.lists(VALUES, min_size=1, max_size=20),
    st.lists(st.one_of(st.none(), INT64), min_size=1, max_size=20),
    st.lists(TEXT, min_size=1, max_size=20),
    st.lists(st.one_of(st.none(), TEXT), min_size=1, max_size=40),
    st.lists(REAL, min_size=1, max_size=20),
    st.lists(st.binary(max_size=300), min_size=1, max_size=5),
)


def exactly(values: Sequence[Value]) -> list[tuple[str, object]]:
    """Values distinguished by type and bits: -0.0 is not 0.0, and 1 is not 1.0."""
    return [(type(value).__name__, struct.pack(">d", value) if isinstance(value, float) else value) for value in values]


@given(COLUMNS)
@settings(max_examples=examples(200))
def test_a_column_round_trips(values: list[Value]) -> None:
    out = bytearray(b"before")
    encode_column(out, values)
    decoded, position = decode_column(bytes(out) + b"after", 6, len(values))
    assert exactly(decoded) == exactly(values)
    assert position == len(out)


def by_the_format(value: Value) -> bytes:
    """A column of one value, by the description of the format."""
    if value is None:
        return b"\0"
    if isinstance(value, int):
        width = next(width for width in (1, 2, 4, 8) if -(1 << 8 * width - 1) <= value < 1 << 8 * width - 1)
        return bytes((width,)) + value.to_bytes(width, "little", signed=True)
    if isinstance(value, float):
        return b"\x10" + struct.pack("<d", value)
    raw = value.encode() if isinstance(value, str) else value
    kind = 19 if isinstance(value, bytes) else 17 if raw.isascii() else 18
    width = 1 if len(raw) < 1 << 8 else 2 if len(raw) < 1 << 16 else 4
    return bytes((kind, width)) + len(raw).to_bytes(width, "little") + raw


@given(st.lists(VALUES))
@example([0, 127, 128, -128, -129, 2**15 - 1, 2**15, -(2**15), -(2**15) - 1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, -(2**63)])
@example([None, 0.0, -0.0, math.inf, "", "a" * 255, "a" * 256, "é" * 127, "é" * 128, "a" * 65536, b"", b"a" * 256])
def test_columns_of_one_value_have_the_bytes_of_the_format(values: list[Value]) -> None:
    together = bytearray()
    encode_single_values(together, values)
    assert together == b"".join(map(by_the_format, values))
    apart = bytearray()
    for value in values:
        encode_column(apart, [value])
    assert apart == together
    columns, position = decode_columns(bytes(together) + b"after", 0, len(values), 1)
    assert position == len(together)
    assert [exactly(column) for column in columns] == [exactly([value]) for value in values]
    if together:
        with pytest.raises((ValueError, IndexError, struct.error)):
            decode_columns(bytes(together[:-1]), 0, len(values), 1)


def test_extreme_values_keep_their_width() -> None:
    for values, size in (([127, -128], 3), ([128], 3), ([2**31 - 1], 5), ([2**63 - 1, -(2**63)], 17), ([math.inf, -math.inf], 17)):
        out = bytearray()
        encode_column(out, values)
        assert len(out) == size
        assert list(decode_column(bytes(out), 0, len(values))[0]) == values


@st.composite
def shapes(draw: st.DrawFn) -> TableShape:
    count = draw(st.integers(1, 4))
    columns = tuple(f"c{index}" for index in range(count))
    without_rowid = draw(st.booleans())
    key = tuple(draw(st.lists(st.integers(0, count - 1), min_size=1 if without_rowid else 0, max_size=count, unique=True)))
    rowid_column = draw(st.integers(-1, count - 1)) if not without_rowid and len(key) == 1 else -1
    types = tuple(draw(st.sampled_from(["", "INTEGER", "text", "Numeric(5, 2)"])) for _ in columns)
    return TableShape(draw(TEXT), columns, types, key, rowid_column, without_rowid)


@st.composite
def runs(draw: st.DrawFn, table: TableShape, most: int = 4) -> RowRun:
    kind = draw(st.sampled_from(list(RowKind)))
    count = draw(st.integers(1, most))

    def column() -> list[Value]:
        return draw(st.lists(VALUES, min_size=count, max_size=count))

    def image(rowids: Sequence[int] | None) -> list[Sequence[Value]]:
        return [rowids if index == table.rowid_column and rowids is not None else column() for index in range(len(table.columns))]

    run = RowRun(table, kind, count)
    if not table.without_rowid:
        run.rowids = draw(st.lists(INT64, min_size=count, max_size=count))
        if kind is RowKind.UPDATE and draw(st.booleans()):
            run.new_rowids = draw(st.lists(INT64, min_size=count, max_size=count))
    if kind is not RowKind.INSERT and (table.without_rowid or (table.key and draw(st.booleans()))):
        run.keys = [column() for _ in table.key]
    if kind is not RowKind.DELETE:
        run.new = image(run.new_rowids or run.rowids)
    if kind is not RowKind.INSERT and draw(st.booleans()):
        run.old = image(run.rowids)
    return run


@st.composite
def transactions(draw: st.DrawFn) -> Transaction:
    tables = draw(st.lists(shapes(), min_size=1, max_size=3))
    some_operation: st.SearchStrategy[Operation] = st.one_of(
        st.sampled_from(tables).flatmap(runs),
        st.builds(SchemaChange, TEXT, st.binary(min_size=16, max_size=16)),
        st.builds(SettingChange, TEXT, VALUES),
    )
    operations = draw(st.lists(some_operation, max_size=4))
    rows = st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[VALUES] * width), max_size=3))
    results = draw(st.lists(st.builds(StatementResult, st.integers(0, 2**40), rows.map(tuple)), max_size=3))
    return Transaction(draw(st.integers(1, 2**40 - 1)), operations, draw(TEXT), tuple(results))


def facts(transaction: Transaction) -> list[object]:
    """A transaction in a comparable form."""
    found: list[object] = [transaction.number, transaction.request_id]
    found += [(result.rows_affected, [exactly(row) for row in result.rows], result.rows_dropped) for result in transaction.results]
    for operation in transaction.operations:
        if isinstance(operation, RowRun):
            parts = (operation.keys, operation.new, operation.old)
            images = [None if part is None else [exactly(column) for column in part] for part in parts]
            rowids = [None if ids is None else list(ids) for ids in (operation.rowids, operation.new_rowids)]
            found.append((operation.table, operation.kind, operation.count, rowids, images))
        elif isinstance(operation, SettingChange):
            found.append((operation.name, exactly([operation.value])))
        else:
            found.append(operation)
    return found


@given(st.lists(transactions(), min_size=1, max_size=3), st.binary(min_size=16, max_size=16), INT64)
@settings(max_examples=examples(60), deadline=None)
def test_a_batch_round_trips(batch: list[Transaction], digest: bytes, number: int) -> None:
    dictionary = TableDictionary()
    records = [encode_transaction(transaction, dictionary) for transaction in batch]
    header = BatchHeader(digest, abs(number), 7, 1, 2, digest, bytes(16), tuple(dictionary.shapes))
    decoded = decode_header(encode_header(header))
    assert decoded == header
    assert [facts(decode_transaction(record, decoded.tables)) for record in records] == [facts(transaction) for transaction in batch]


@given(transactions(), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_damage_is_refused_or_read_as_something_else(transaction: Transaction, data: st.DataObject) -> None:
    dictionary = TableDictionary()
    record = bytearray(encode_transaction(transaction, dictionary))
    place = data.draw(st.integers(0, len(record) * 8 - 1))
    record[place // 8] ^= 1 << place % 8
    with suppress(FormatError):
        decode_transaction(bytes(record), dictionary.shapes)
    with pytest.raises(FormatError):
        decode_transaction(bytes(record[: len(record) // 2]), dictionary.shapes)


@st.composite
def small_transactions(draw: st.DrawFn) -> tuple[list[bytes], list[TableShape]]:
    """The records of transactions of which most change one row of a few tables, and the tables."""
    dictionary, tables = TableDictionary(), draw(st.lists(shapes(), min_size=1, max_size=2))
    one_row = st.sampled_from(tables).flatmap(lambda table: runs(table, 1))
    of_one_row = st.builds(Transaction, st.integers(1, 2**40 - 1), st.lists(one_row, min_size=1, max_size=1))
    several = st.lists(st.one_of(of_one_row, of_one_row, of_one_row, transactions()), min_size=1, max_size=8)
    return [encode_transaction(transaction, dictionary) for transaction in draw(several)], dictionary.shapes


def by_row(run: RowRun) -> list[list[object]]:
    """The changes of a run, one list per row."""

    def cut(part: Sequence[Sequence[Value]] | None, row: int) -> list[object] | None:
        return None if part is None else [exactly([column[row]]) for column in part]

    return [
        [
            run.table,
            run.kind,
            *(None if ids is None else ids[row] for ids in (run.rowids, run.new_rowids)),
            *(cut(part, row) for part in (run.keys, run.new, run.old)),
        ]
        for row in range(run.count)
    ]


def check_joined(records: Sequence[bytes], tables: Sequence[TableShape]) -> None:
    """Every stretch that is decoded together says of its rows what the records say one by one."""
    for start in range(len(records)):
        joined = decode_joined(records, start, tables)
        if joined is None:
            continue
        apart = [decode_transaction(record, tables) for record in records[start : start + len(joined.numbers)]]
        assert joined.numbers == [transaction.number for transaction in apart]
        rows: list[list[object]] = []
        for transaction in apart:
            assert (transaction.request_id, transaction.results) == ("", ())
            (run,) = transaction.operations
            assert isinstance(run, RowRun)
            rows += by_row(run)
        assert by_row(joined.run) == rows


@given(small_transactions())
@settings(max_examples=examples(100), deadline=None)
def test_rows_decoded_together_are_those_decoded_one_by_one(given_batch: tuple[list[bytes], list[TableShape]]) -> None:
    check_joined(*given_batch)


@given(small_transactions(), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_rows_decoded_together_end_before_a_damaged_record(given_batch: tuple[list[bytes], list[TableShape]], data: st.DataObject) -> None:
    records, tables = given_batch
    index = data.draw(st.integers(0, len(records) - 1))
    damaged = bytearray(records[index])
    place = data.draw(st.integers(0, len(damaged) * 8 - 1))
    damaged[place // 8] ^= 1 << place % 8
    size = data.draw(st.sampled_from([len(damaged), len(damaged) // 2, 0]))
    check_joined([*records[:index], bytes(damaged[:size]), *records[index + 1 :]], tables)


@given(small_transactions(), st.data())
@settings(max_examples=30, deadline=None)
def test_rows_decoded_together_end_before_a_longer_record(given_batch: tuple[list[bytes], list[TableShape]], data: st.DataObject) -> None:
    records, tables = given_batch
    index = data.draw(st.integers(0, len(records) - 1))
    records = [*records[:index], records[index] + b"\0", *records[index + 1 :]]
    check_joined(records, tables)
    assert decode_joined(records, index, tables) is None


def test_alike_transactions_are_decoded_in_one_stretch() -> None:
    shape = TableShape("t", ("id", "v"), ("integer", "text"), (0,), 0, False)
    dictionary = TableDictionary()

    def record(number: int, kind: RowKind, *values: str) -> bytes:
        ids = list(range(number, number + len(values)))
        run = RowRun(shape, kind, len(values), ids, new=None if kind is RowKind.DELETE else [ids, list(values)])
        return encode_transaction(Transaction(number, [run]), dictionary)

    records = [record(number, RowKind.INSERT, "a" * number) for number in range(1, 301)]
    records += [record(301, RowKind.INSERT, "b", "c"), record(303, RowKind.DELETE, "d"), record(304, RowKind.DELETE, "e")]
    joined = decode_joined(records, 0, dictionary.shapes)
    assert joined is not None
    assert joined.numbers == list(range(1, 301))
    assert joined.run.new is not None
    assert list(joined.run.new[1]) == ["a" * number for number in range(1, 301)]
    assert decode_joined(records, 300, dictionary.shapes) is None
    deleted = decode_joined(records, 301, dictionary.shapes)
    assert deleted is not None
    assert (deleted.numbers, deleted.run.kind) == ([303, 304], RowKind.DELETE)


def test_unknown_formats_are_refused_by_name() -> None:
    record = bytearray(encode_transaction(Transaction(1), TableDictionary()))
    for index, value, words in ((0, 2, "version 2"), (1, 2, "snapshot pointer"), (1, 9, "kind 9"), (3, 2, "part 1 of 2")):
        changed = bytearray(record)
        changed[index] = value
        with pytest.raises(FormatError, match=words):
            decode_transaction(bytes(changed), ())
    header = bytearray(encode_header(BatchHeader(bytes(16), 1, 1, 0, 0, bytes(16), bytes(16))))
    for index, value, words in ((0, 0, "TB"), (2, 9, "version 9"), (3, 1, "flags 0x1")):
        changed = bytearray(header)
        changed[index] = value
        with pytest.raises(FormatError, match=words):
            decode_header(bytes(changed))
    with pytest.raises(FormatError, match="too many"):
        decode_header(bytes(header) + b"x")
