"""A recovery reads replicas one after another, and waits for a hanging one until the read time-out."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger.recovery import Recovery

TESTS = [
    "tests/unit/ledger/test_recovery.py::test_a_bookie_that_is_slow_to_answer_a_read_is_not_waited_for",
    "tests/unit/client/test_read_hedged.py::test_a_recovery_does_not_wait_for_a_bookie_that_hangs_behind_its_fence[0]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Recovery, "hedge_at", property(lambda self: float("inf")))
