"""Code 107 is sent over version 2, where it makes Apache's client close its connection."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.wire import Status, status

TESTS = [
    "tests/unit/wire/test_v2.py::test_every_status_travels_and_107_never_does",
    "tests/unit/wire/test_v2.py::test_an_unknown_ledger_state_is_an_io_error_over_v2",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(status, "V2_CODES", {**status.V2_CODES, Status.UNKNOWN_LEDGER_STATE: 107})
