"""The node of an owner that could not be deleted when it ended stays as long as the session lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "logs"
CHECKERS = ("ended_owners_let_go",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store.head_store import HeadStore

    def never(self: Any, path: str, is_own: Any) -> None:
        return

    patch(HeadStore, "delete_later", never)
