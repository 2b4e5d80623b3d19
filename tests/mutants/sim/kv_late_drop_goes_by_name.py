"""A drop that has to be repeated drops the store that has the name by then."""

from __future__ import annotations

from collections.abc import Callable

KIND = "stores"
CHECKERS = ("next_stores_are_left_alone",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.errors import BadVersion, NodeExists, NoNode
    from triplicate.kv import StoreInfo
    from triplicate.kv.hosting import store_directory
    from triplicate.metadata import Tree

    async def of_any(tree: Tree, path: str, name: str) -> StoreInfo:
        while (found := await store_directory._stored(tree, path)) is not None:
            dropping = replace(found.info, is_dropping=True)
            try:
                await tree.multi(found.node.change(store_directory.encode_info(dropping)))
            except (NoNode, NodeExists, BadVersion):
                continue
            return dropping
        raise store_directory.missing_store(name)

    patch(store_directory, "_mark_dropping", of_any)
