"""A database or a store is made though its log could store nothing."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log import Logs

TESTS = ["tests/unit/client/test_client_impossible_sizes.py::test_too_few_writable_bookies_are_explained_by_those_that_only_read"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def anyway(logs: object, name: str, settings: object) -> None:
        return None

    patch(Logs, "require_bookies", anyway)
