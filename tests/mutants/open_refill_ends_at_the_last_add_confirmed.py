"""A refill copies an open ledger up to its last-add-confirmed, although the lost disks acknowledged entries behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

TESTS = ["tests/unit/autorecovery/core/test_open_refill.py::test_no_entry_of_the_old_disks_is_behind_the_end"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.core.open_refill import LastStored, OpenRefillBound

    def observe(bound: OpenRefillBound, answers: Mapping[str, LastStored]) -> None:
        if bound.has_horizon and bound.end is None:
            bound.end = max((last.last_add_confirmed for last in answers.values()), default=-1)

    patch(OpenRefillBound, "observe", observe)
