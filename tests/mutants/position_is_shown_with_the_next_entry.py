"""A session gets its position from the leader, and followers see it with the next entry or after the pause of the no-op."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/sql/engine/test_read_admission.py::test_a_leader_shows_followers_the_position_that_a_session_asks_for",
    "tests/unit/log/writing/test_log_writer.py::test_records_are_made_readable_before_the_noop_is_due",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing.idle_noop_timer import IdleNoopTimer
    from triplicate.sql.engine.leadership import Leadership

    patch(Leadership, "make_readable", lambda self: None)
    patch(IdleNoopTimer, "hurry", lambda self: None)
