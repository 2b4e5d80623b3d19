"""A change of a head lists ledgers without checking that they exist."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.store.head_store import HeadStore

TESTS = [
    "tests/unit/log/upkeep/test_orphans.py::test_a_roll_into_a_swept_ledger_takes_another_one",
    "tests/unit/log/upkeep/test_orphans.py::test_a_take_over_into_a_swept_ledger_takes_another_one",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(HeadStore, "_ledger_checks", lambda self, change, extra: [])
