"""Ledgers of a publish whose outcome is unknown are deleted without a look whether the log lists them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import publishing

    async def nothing_is_listed(store: Any, name: str) -> frozenset[int]:
        return frozenset()

    patch(publishing, "_listed_ids", nothing_is_listed)
