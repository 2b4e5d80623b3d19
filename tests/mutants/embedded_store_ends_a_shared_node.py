"""The end of an embedded store ends the node of the database beside it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/embedded/test_embedded_store.py::test_a_folder_keeps_its_store_beside_its_database",
    "tests/unit/blocking/test_blocking_store.py::test_a_database_and_a_store_share_a_node",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.embedded import EmbeddedStore

    async def ends(self: EmbeddedStore) -> None:
        self._is_closed = True
        await self._node.aclose()

    patch(EmbeddedStore, "aclose", ends)
