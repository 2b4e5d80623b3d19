"""The judge of histories accepts an order in which a transfer precedes one that ended before it began."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.histories import judge

TESTS = [
    "tests/unit/benchmarks/histories/test_judge.py::test_transfers_that_did_not_are_reported[changed11-had ended before]",
    "tests/unit/benchmarks/histories/test_judge.py::test_transfers_that_did_not_are_reported[changed8-had ended]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(judge, "_judge_order", lambda seen, place, report: None)
