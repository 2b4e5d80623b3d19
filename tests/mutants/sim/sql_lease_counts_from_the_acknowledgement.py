"""The lease of a leader begins when an append is acknowledged, by when another node may have led for long."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("registers_are_linearizable",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.leadership import Leadership

    def acknowledged(self: Leadership, sent_at: float) -> None:
        self._lease.acknowledged(self._host.clock.elapsed())

    patch(Leadership, "_acknowledged", acknowledged)
