"""A bounded read is answered from a copy of any age."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("bounded_reads_are_recent",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.read_admission import ReadAdmission

    async def at_once(self: ReadAdmission, max_staleness_s: float) -> float:
        return float("inf")

    patch(ReadAdmission, "_be_recent", at_once)
