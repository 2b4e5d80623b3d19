"""A new metadata session trusts its first read although its server may be behind."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import RenewingTree

TESTS = ["tests/unit/metadata/drivers/test_renewing_tree.py::test_a_new_session_is_synced_before_its_first_read_is_trusted"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def renew(self: RenewingTree) -> None:
        old, self._tree = self._tree, await self._open_session()
        self._expired = False
        await old.close()

    patch(RenewingTree, "_renew", renew)
