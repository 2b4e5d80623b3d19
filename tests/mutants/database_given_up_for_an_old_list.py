"""A node drops a database that is missing from a list which may be stale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.replica import HostingLoop

TESTS = ["tests/unit/sql/hosting/test_dropping.py::test_nothing_is_given_up_for_a_list_of_databases_that_is_old"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    infos = HostingLoop._infos

    async def unsynced(self: HostingLoop[Any, Any], *, synced: bool) -> dict[str, Any]:
        found: dict[str, Any] = await infos(self, synced=False)
        return found

    patch(HostingLoop, "_infos", unsynced)
