"""A transaction whose results cannot be encoded is refused, but its record is in the batch by then."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from triplicate.sql.core.batch_builder import BatchBuilder, BatchFit
from triplicate.sql.core.records import Transaction, encode_transaction
from triplicate.sql.core.statement_results import encode_results

TESTS = ["tests/unit/sql/engine/test_leadership.py::test_a_result_that_cannot_be_encoded_undoes_its_statement_only"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def add(self: BatchBuilder, transaction: Transaction) -> BatchFit:
        fit = self._add(transaction.number, partial(encode_transaction, transaction))
        if fit is BatchFit.ADDED and transaction.request_id:
            results = encode_results(transaction.results)
            self.requests.append((transaction.request_id, transaction.number, results))
        return fit

    patch(BatchBuilder, "add", add)
