"""A new leader serves while its predecessor may still answer reads under its lease."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("registers_are_linearizable",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica import LeaseSuccession

    async def at_once(self: LeaseSuccession, epoch: int, since: float) -> None:
        return

    patch(LeaseSuccession, "outwait_predecessor", at_once)
