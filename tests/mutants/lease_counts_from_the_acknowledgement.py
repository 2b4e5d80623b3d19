"""The lease begins when an append is acknowledged, by when another node may have led for long."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.leadership import Leadership

TESTS = ["tests/unit/sql/test_lease.py::test_the_lease_counts_from_the_sending_of_an_append"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def acknowledged(self: Leadership, sent_at: float) -> None:
        self._lease.acknowledged(self._host.clock.elapsed())

    patch(Leadership, "_acknowledged", acknowledged)
