"""A follower under load pauses as long while a session waits for a later position."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/replica/test_replica.py::test_a_session_that_waits_ends_the_pause_of_a_follower",
    "tests/unit/sql/engine/test_read_admission.py::test_a_session_that_waits_hurries_its_copy",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica import Replica

    patch(Replica, "hurry", lambda self: None)
