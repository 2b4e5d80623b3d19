"""A decommission does not look again after its requests, so two at a time may leave too few bookies."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import decommission

TESTS = [
    "tests/unit/autorecovery/test_decommission.py::test_of_two_decommissions_at_a_time_one_is_refused_where_both_would_leave_too_few",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def room_has_shrunk(run: object) -> bool:
        return False

    patch(decommission._Decommission, "room_has_shrunk", room_has_shrunk)
