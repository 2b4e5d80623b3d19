"""A leader whose copy failed joins the next election at once."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/replica/test_replica.py::test_a_candidate_with_a_handicap_leaves_the_first_word_to_others"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica.election import Election

    first = Election._wait_for_others

    async def without(self: Election, position: int, handicap_s: float, departed: str) -> None:
        await first(self, position, 0.0, departed)

    patch(Election, "_wait_for_others", without)
