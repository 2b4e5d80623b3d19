"""A refused decommission deletes its requests, also where another operator had made the bookie read-only before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "repairs"
CHECKERS = ("refused_decommissions_leave_nothing",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.metadata import RequestChange
    from triplicate.metadata.read_only_requests import ReadOnlyRequests

    undo = ReadOnlyRequests.undo

    async def of_all(self: Any, bookie_id: str, change: RequestChange) -> None:
        await undo(self, bookie_id, replace(change, before=None))

    patch(ReadOnlyRequests, "undo", of_all)
