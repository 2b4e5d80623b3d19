"""A drain is accepted although too few nodes would be left."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/hosting/test_placement_changes.py::test_a_drain_that_would_leave_too_few_copies_is_refused_and_nothing_is_changed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.hosting import placement_changes

    patch(placement_changes, "shortages", lambda databases, nodes: [])
