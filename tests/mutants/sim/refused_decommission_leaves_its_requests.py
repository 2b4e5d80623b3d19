"""A decommission that is refused after it has made its requests leaves them: its bookies stay read-only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "repairs"
CHECKERS = ("refused_decommissions_leave_nothing",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import decommission

    async def not_at_all(self: Any) -> None:
        return

    patch(decommission._Decommission, "withdraw_requests", not_at_all)
