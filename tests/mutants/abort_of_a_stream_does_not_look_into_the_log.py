"""An abort after a commit whose answer was lost deletes the ledgers although the log lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.log import StagedLedger
from triplicate.spark.cluster.access import LogAccess

TESTS = ["tests/unit/spark/test_logs_exactly_once.py::test_a_commit_whose_answer_is_lost_is_distinguished_from_one_that_did_not_happen"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def delete(logs: LogAccess, log: str, ledgers: Sequence[StagedLedger]) -> None:
        for ledger in ledgers:
            logs._loop.call(logs._logs.client.delete(ledger.ledger_id))

    patch(LogAccess, "discard", delete)
