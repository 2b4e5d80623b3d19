"""A batch that changes deadlines is refused for the size of the values, which are not logged."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/kv/core/test_decisions.py::test_the_values_of_changed_deadlines_are_held_and_not_logged"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.core import decisions
    from triplicate.kv.core.store_records import held_size_of

    patch(decisions, "size_of", held_size_of)
