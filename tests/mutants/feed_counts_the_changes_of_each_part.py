"""The change feed numbers the changes of each part of a transaction from 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from triplicate.sql.core import committed_changes
from triplicate.sql.core.records import Transaction

TESTS = [
    "tests/unit/sql/core/test_committed_changes.py::test_the_parts_of_a_large_transaction_follow_each_other",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    honest = committed_changes._changes_of

    def changes_of(transaction: Transaction, *arguments: Any, **options: Any) -> Any:
        return honest(replace(transaction, part=transaction.part._replace(changes_before=0)), *arguments, **options)

    patch(committed_changes, "_changes_of", changes_of)
