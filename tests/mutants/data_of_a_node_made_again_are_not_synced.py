"""The data of a node are not synced if the node was ephemeral and is created again as persistent."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers.sqlite_store import SqliteStore

TESTS = ["tests/unit/metadata/drivers/test_sqlite_tree.py::test_a_node_that_is_made_again_to_stay_is_synced"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    real = SqliteStore._is_ephemeral

    def once(self: SqliteStore, path: str) -> bool:
        return self._database.in_transaction or real(self, path)

    patch(SqliteStore, "_is_ephemeral", once)
