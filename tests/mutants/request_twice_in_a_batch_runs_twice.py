"""Only results of earlier batches are looked for under a request id."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.writer_connection import AutocommitRequest, AutocommitResult, PendingBatch, WriterConnection

TESTS = ["tests/unit/sql/test_kept.py::test_one_id_twice_in_a_batch_runs_once"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = WriterConnection._known_request

    def in_the_table_alone(self: WriterConnection, request: AutocommitRequest, pending: PendingBatch) -> AutocommitResult | None:
        return original(self, request, PendingBatch([]))

    patch(WriterConnection, "_known_request", in_the_table_alone)
