"""A leader whose own copy failed stands at the next election as if nothing had been."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/replica/test_replica.py::test_a_leader_whose_own_copy_fails_leaves_the_next_election_to_a_peer"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica.election import Election

    first = Election._let_others_first

    async def without(self: Election, position: int, handicap_s: float) -> None:
        await first(self, position, 0.0)

    patch(Election, "_let_others_first", without)
