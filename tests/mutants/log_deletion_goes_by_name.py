"""A deletion deletes the nodes that it finds under the name: repeated or late, it deletes the next log of that name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = [
    "tests/unit/log/store/test_head_store_identity.py::test_a_late_transaction_does_nothing_to_the_next_log",
    "tests/unit/log/store/test_head_store_identity.py::test_a_deletion_whose_last_answer_is_lost_leaves_the_next_log_alone",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import NoNode, NotEmpty
    from triplicate.log.upkeep import truncation
    from triplicate.metadata import DeleteNode, own_paths

    async def delete_tree(store: Any, path: str) -> None:
        try:
            children, _ = await store.tree.children(path)
            for child in children:
                await delete_tree(store, f"{path}/{child}")
            await store.tree.multi([DeleteNode(path)])
        except NoNode:
            return
        except NotEmpty:
            await delete_tree(store, path)

    async def by_name(store: Any, name: str, log_id: str) -> None:
        await store.persist(lambda: delete_tree(store, own_paths.consumers_path(store.own_root, name)))
        await store.persist(lambda: delete_tree(store, store.path(name)))

    patch(truncation, "_delete_nodes", by_name)
