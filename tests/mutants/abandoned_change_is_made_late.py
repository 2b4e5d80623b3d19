"""A change to the embedded metadata is made once the file is free, although its caller has given up waiting for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.metadata import SqliteTree

TESTS = ["tests/unit/metadata/drivers/test_sqlite_tree.py::test_a_change_that_nobody_waits_for_any_more_is_not_made_late"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def write(self: SqliteTree, function: Callable[[Any], Any], data_of: str = "") -> Any:
        return await self._run(lambda work: self._store.write(work, data_of), function)

    patch(SqliteTree, "_write", write)
