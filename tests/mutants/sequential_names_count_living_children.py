"""Sequential names count existing children instead of all creations, so a ledger id is given twice."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import memory_tree

TESTS = [
    "tests/unit/metadata/core/test_tree_contract.py::test_sequential_names_count_every_creation_under_the_parent[memory]",
    "tests/unit/metadata/test_layout.py::test_new_ids_count_from_zero_without_gaps_and_leave_no_node",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    delete = memory_tree.MemoryStore.delete

    def forgetful(store: memory_tree.MemoryStore, path: str, version: int, change: memory_tree._Change) -> None:
        delete(store, path, version, change)
        store._nodes[path.rpartition("/")[0] or "/"].created_children -= 1

    patch(memory_tree.MemoryStore, "delete", forgetful)
