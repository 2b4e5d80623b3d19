"""A session that was given a position reads a copy that has not reached it."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("sessions_read_forward",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.read_admission import ReadAdmission

    async def at_once(self: ReadAdmission, position: int) -> None:
        return

    patch(ReadAdmission, "_reach", at_once)
