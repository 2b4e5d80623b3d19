"""A Spark task that fails leaves the ledger it was staging."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.blocking.log_writing_facade import BlockingStagingWriter

TESTS = ["tests/unit/spark/logs/test_writing.py::test_a_task_that_fails_deletes_its_ledger"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(BlockingStagingWriter, "abandon", lambda self: None)
