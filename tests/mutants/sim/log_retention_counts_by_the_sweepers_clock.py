"""Retention by age counts by the wall clock of the process that sweeps: one that is days ahead removes the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.upkeep import truncation

    async def by_own_clock(store: Any, name: str, settings: Any) -> Any:
        return settings, store.host.clock.wall_us()

    patch(truncation, "_judged_by", by_own_clock)
