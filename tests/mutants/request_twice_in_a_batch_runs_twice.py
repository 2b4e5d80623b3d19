"""A request id is looked up among earlier batches only, so a repeat within one batch runs twice."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.batch_builder import BatchBuilder

TESTS = ["tests/unit/sql/storage/test_transaction_history.py::test_one_id_twice_in_a_batch_runs_once"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(BatchBuilder, "has_request", lambda self, request_id: False)
