"""Aborting a Spark write trusts its messages and deletes their ledgers without asking the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.log import StagedLedger
from triplicate.spark.cluster.access import LogAccess

TESTS = ["tests/unit/spark/logs/test_writing.py::test_abort_after_a_commit_that_raised_keeps_what_is_published"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def discard(self: LogAccess, log: str, ledgers: Sequence[StagedLedger]) -> None:
        for ledger in ledgers:
            self._loop.call(self._logs.client.delete(ledger.ledger_id))

    patch(LogAccess, "discard", discard)
