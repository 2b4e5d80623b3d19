"""Batches built from transactions: nothing is lost, nothing is too large, and a refused transaction leaves no trace."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplicate.sql.core import batch_builder
from triplicate.sql.core.batch_builder import BatchBuilder, BatchFit
from triplicate.sql.core.records import (
    BatchHeader,
    Operation,
    RowChange,
    RowKind,
    RowRun,
    Transaction,
    decode_header,
    decode_transaction,
    encoded_columns,
    row_operation,
)
from triplicate.sql.core.statement_results import StatementResult
from triplicate.sql.core.table_shape import TableShape

MAX_BYTES, AIM_BYTES, MARGIN_BYTES = 4096, 1024, 64


def _header(tables: tuple[TableShape, ...]) -> BatchHeader:
    return BatchHeader(b"d" * 16, 3, 4, 1, 1, b"", b"", tables, 5, 0)


def _insert(table: str, size: int) -> RowRun:
    shape = TableShape(table, ("id", "value"), ("integer", "text"))
    return RowRun(shape, RowKind.INSERT, 1, rowids=[1], new=[[1], ["v" * size]])


def _row(run: Operation) -> RowChange:
    assert isinstance(run, RowRun)
    operation = row_operation(run.kind, moved=False, keys=False, old=False)
    return RowChange(run.table, operation, [value for (value,) in encoded_columns(run)])


SIZES = st.lists(st.tuples(st.sampled_from(["a", "b", "a" * 300]), st.integers(0, 4500), st.booleans()), max_size=12)


@given(SIZES)
def test_a_batch_holds_what_it_accepted_and_stays_within_its_bound(sizes: Sequence[tuple[str, int, bool]]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batch_builder, "MAX_ENTRY_BYTES", MAX_BYTES)
        patched.setattr(batch_builder, "AIM_ENTRY_BYTES", AIM_BYTES)
        patched.setattr(batch_builder, "ENTRY_MARGIN_BYTES", MARGIN_BYTES)
        batch = BatchBuilder(_header)
        accepted: list[Transaction] = []
        for number, (table, size, has_request) in enumerate(sizes, start=1):
            results = (StatementResult(1),) if has_request else ()
            transaction = Transaction(number, [_insert(table, size)], f"request {number}" if has_request else "", results)
            before = batch.preamble(), list(batch.records), list(batch.numbers), list(batch.requests), batch.size_bytes
            row = None if has_request else _row(transaction.operations[0])
            fit = batch.add(transaction) if row is None else batch.add_row(number, row)
            if fit is BatchFit.ADDED:
                accepted.append(transaction)
                assert not has_request or batch.has_request(f"request {number}")
            else:
                assert (batch.preamble(), batch.records, batch.numbers, batch.requests, batch.size_bytes) == before
                assert (fit is BatchFit.TOO_LARGE) is (not accepted)
                assert BatchBuilder(_header).add(transaction) is not BatchFit.NEXT_BATCH
            assert batch.size_bytes == sum(map(len, batch.records))
        assert len(batch.preamble()) + batch.size_bytes + MARGIN_BYTES <= max(MAX_BYTES, AIM_BYTES + len(batch.preamble()))
        tables = decode_header(batch.preamble()).tables
        decoded = [decode_transaction(record, tables) for record in batch.records]
        assert [one.number for one in decoded] == batch.numbers == [one.number for one in accepted]
        assert [one.request_id for one in decoded] == [one.request_id for one in accepted]
        assert [request_id for request_id, _, _ in batch.requests] == [one.request_id for one in accepted if one.request_id]
