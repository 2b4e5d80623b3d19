"""A leader answers that an outcome is unknown while it still counts as the leader, and ends the session of a client that connects again."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.leadership import Leadership

TESTS = ["tests/unit/sql/engine/test_leadership.py::test_no_client_learns_of_an_unknown_outcome_before_the_lead_is_over"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Leadership, "_serve_until_over", Leadership._serve)
