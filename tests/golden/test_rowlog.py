"""Batches of the row log of each release: with a header of version 1, and of version 2 with the log's time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

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
from triplicate.sql.core.records import (
    EncodedOperations,
    TableDictionary,
    TransactionPart,
    decode_operations,
    encode_header,
    encode_operations,
    encode_record,
    encode_transaction,
)

FOLDER = Path(__file__).with_name("rowlog")
SAMPLES = {"batch.json": 0, "batch-with-time.json": 1_764_000_000_123}
"""Sample and the log's time in its header: the first is of header version 1, which has none."""
FLIGHTS = TableShape("flights", ("id", "carrier", "delay"), ("INTEGER", "text", "real"), (0,), 0)
PAIRS = TableShape("pairs", ("k", "v"), ("TEXT", ""), (0,), -1, without_rowid=True)


def batch() -> tuple[BatchHeader, list[Transaction]]:
    """Contents of the sample."""
    transactions = [
        Transaction(
            1,
            [
                SchemaChange("CREATE TABLE flights(id INTEGER PRIMARY KEY, carrier text, delay real)", bytes(range(16))),
                RowRun(FLIGHTS, RowKind.INSERT, 3, rowids=(1, 2, 300), new=((1, 2, 300), ("UA", None, "ÅÄ"), (1.5, None, -0.0))),
            ],
            "request-1",
            (StatementResult(0), StatementResult(3, ((1, "UA"), (2, None)))),
        ),
        Transaction(
            2,
            [
                RowRun(FLIGHTS, RowKind.UPDATE, 1, (1,), (7,), new=((7,), ("AA",), (2.0,)), old=((1,), ("UA",), (1.5,))),
                RowRun(FLIGHTS, RowKind.DELETE, 2, (2, 300)),
                RowRun(PAIRS, RowKind.INSERT, 2, new=(("a", "b"), (b"\x00\xff", 2**40))),
                RowRun(PAIRS, RowKind.DELETE, 1, keys=(("a",),)),
                SettingChange("user_version", 3),
            ],
        ),
    ]
    return BatchHeader(b"\x11" * 16, 5, 9, 3, 4, bytes(16), bytes(range(16)), (FLIGHTS, PAIRS)), transactions


def timed(header: BatchHeader, time_ms: int) -> BatchHeader:
    return replace(header, time_ms=time_ms, forget_before_ms=max(0, time_ms - 86_400_000))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_stored_batch_is_read_as_it_was_written(name: str) -> None:
    sample = json.loads((FOLDER / name).read_text())
    header, transactions = batch()
    header = timed(header, SAMPLES[name])
    decoded = decode_header(bytes.fromhex(sample["preamble"]))
    assert decoded == header
    for record, expected in zip(sample["records"], transactions, strict=True):
        found = decode_transaction(bytes.fromhex(record), decoded.tables)
        assert (found.number, found.request_id, found.results) == (expected.number, expected.request_id, expected.results)
        assert [_plain(one) for one in found.operations] == [_plain(one) for one in expected.operations]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_batch_is_written_to_the_same_bytes(name: str) -> None:
    sample = json.loads((FOLDER / name).read_text())
    header, transactions = batch()
    header = timed(header, SAMPLES[name])
    dictionary = TableDictionary()
    assert [encode_transaction(one, dictionary).hex() for one in transactions] == sample["records"]
    assert encode_header(header).hex() == sample["preamble"]


def part() -> tuple[Transaction, EncodedOperations, TableDictionary]:
    """Contents of the sample of a transaction in parts: the second of three."""
    dictionary = TableDictionary()
    operations = [RowRun(FLIGHTS, RowKind.INSERT, 2, rowids=(8, 9), new=((8, 9), ("UA", "ÅÄ"), (1.5, None)))]
    return Transaction(4, part=TransactionPart(2, 3, 70_000)), encode_operations(operations, dictionary), dictionary


def test_a_part_of_a_transaction_is_read_as_it_was_written_and_written_as_it_is() -> None:
    sample = json.loads((FOLDER / "part.json").read_text())
    transaction, operations, dictionary = part()
    assert encode_record(transaction, [operations]).hex() == sample["record"]
    found = decode_transaction(bytes.fromhex(sample["record"]), dictionary.shapes)
    assert (found.number, found.part) == (4, (2, 3, 70_000))
    assert [_plain(one) for one in found.operations] == [_plain(one) for one in decode_operations(operations, dictionary.shapes)]


def _plain(operation: object) -> object:
    if not isinstance(operation, RowRun):
        return operation
    columns = [
        None if part is None else [list(map(repr, column)) for column in part] for part in (operation.keys, operation.new, operation.old)
    ]
    rowids = [None if ids is None else list(ids) for ids in (operation.rowids, operation.new_rowids)]
    return operation.table, operation.kind, operation.count, rowids, columns
