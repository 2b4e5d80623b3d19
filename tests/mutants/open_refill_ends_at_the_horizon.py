"""A refill copies an open ledger up to what the other bookies stored, although a confirmed entry may have reached them later."""

from __future__ import annotations

from collections.abc import Callable, Mapping

TESTS = ["tests/unit/autorecovery/core/test_open_refill.py::test_no_entry_of_the_old_disks_is_behind_the_end"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.core.open_refill import LastStored, OpenRefillBound

    def observe(bound: OpenRefillBound, answers: Mapping[str, LastStored]) -> None:
        confirmed = max((last.last_add_confirmed for last in answers.values()), default=-1)
        if bound._horizon is not None and bound.end is None and confirmed >= bound._horizon:
            bound.end = confirmed

    patch(OpenRefillBound, "observe", observe)
