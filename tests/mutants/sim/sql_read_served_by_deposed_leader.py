"""A leader answers reads without checking that it still leads."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("registers_are_linearizable",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.leadership import Leadership

    async def at_once(self: Leadership) -> None:
        return

    patch(Leadership, "barrier", at_once)
