"""Entries of joined ledgers count from the beginning of their own ledger."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/logs/test_writing.py::test_many_small_ledgers_are_joined_and_read_by_few_tasks"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.publishing import joining

    patch(joining, "with_first_index", lambda payload, first_index: payload)
