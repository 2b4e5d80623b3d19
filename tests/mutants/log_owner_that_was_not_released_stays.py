"""The node of an owner that could not be deleted when it ended stays as long as the session lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/test_logs_take_over.py::test_an_owner_that_could_not_be_released_is_released_when_the_store_answers"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store.head_store import HeadStore

    def never(self: Any, path: str, is_own: Any) -> None:
        return

    patch(HeadStore, "delete_later", never)
