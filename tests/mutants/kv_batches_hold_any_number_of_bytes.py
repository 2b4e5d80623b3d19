"""A batch returns and holds all values that it looks at, however large they are together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplicate.kv.core import decisions
from triplicate.kv.core.decisions import BatchDecision, Lookup
from triplicate.kv.core.operations import StoreBatch
from triplicate.kv.core.store_interface import StoreLimits

TESTS = [
    "tests/unit/kv/core/test_decisions.py::test_a_batch_that_needs_or_returns_too_much_changes_nothing[operations1-conditions1]",
    "tests/unit/kv/core/test_decisions.py::test_a_batch_that_needs_or_returns_too_much_changes_nothing[operations6-conditions6]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = decisions.decide

    def decide(batch: StoreBatch, lookup: Lookup, time_ms: int, before: int, limits: StoreLimits) -> BatchDecision:
        return right(batch, lookup, time_ms, before, replace(limits, answer_bytes=1 << 60))

    patch(decisions, "decide", decide)
