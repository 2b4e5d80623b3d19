"""A refill gives a ledger up at once that another worker repairs."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/autorecovery/test_bookie_refill.py::test_another_workers_verdict_does_not_end_the_limbo"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import RepairOutcome, bookie_refill

    patch(bookie_refill, "AGAIN", (RepairOutcome.GRACE_PERIOD, RepairOutcome.MARKED_AGAIN, RepairOutcome.HAS_WRITER))
