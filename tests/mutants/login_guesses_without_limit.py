"""Failed logins of an address are never too many."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_an_address_that_guesses_has_to_wait",
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_guesses_that_run_at_the_same_time_are_all_counted",
]


def apply(patch: Any) -> None:
    from triplicate.security import FailedLogins

    patch(FailedLogins, "wait_s", lambda self, address, now_s: 0.0)
