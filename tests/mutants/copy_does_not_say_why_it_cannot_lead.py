"""A copy that could not lead on, for a full disk say, reports no reason."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica.election import Election

TESTS = ["tests/unit/replica/test_replica.py::test_a_leader_whose_own_copy_fails_leaves_the_next_election_to_a_peer"]

_report = Election.report


async def _without_reason(self: Election, position: int, role: str = "", reason: str = "") -> None:
    await _report(self, position, role)


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Election, "report", _without_reason)
