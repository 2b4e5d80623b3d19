"""An explicit last-add-confirmed is stored without waking the long polls that wait for it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_long_polls.py::test_a_poll_is_woken_by_an_explicit_last_add_confirmed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core import ledger_table

    patch(ledger_table, "lac_of_record", lambda record: -1)
