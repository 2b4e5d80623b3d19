"""A cluster is opened at an address without a file, and the file is made."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers.sqlite_tree import SqliteTree

TESTS = ["tests/unit/metadata/test_service_uri.py::test_an_address_without_a_cluster_is_named_and_nothing_is_made"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    opens = SqliteTree.open.__func__  # type: ignore[attr-defined]

    async def always_creates(cls: type[SqliteTree], /, *arguments: object, create: bool, **others: object) -> SqliteTree:
        return await opens(cls, *arguments, create=True, **others)  # type: ignore[no-any-return]

    patch(SqliteTree, "open", classmethod(always_creates))
