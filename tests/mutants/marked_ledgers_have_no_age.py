"""The auditor counts marked ledgers, and publishes no age of the oldest."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import Auditor

TESTS = ["tests/unit/autorecovery/test_auditor.py::test_marked_ledgers_and_the_age_of_the_oldest_are_metrics"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    count = Auditor.count_marks

    async def ageless(auditor: Auditor) -> None:
        await count(auditor)
        auditor._metrics.oldest_mark_s.set(0)

    patch(Auditor, "count_marks", ageless)
