"""Marking a ledger again replaces the bookies of its mark instead of adding to them."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import UnderreplicationManager
from triplicate.metadata.core.repair_formats import encode_mark

TESTS = [
    "tests/unit/metadata/test_underreplication.py::test_marking_again_adds_the_bookies_that_are_new[memory]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def add(marks: UnderreplicationManager, path: str, wanted: tuple[str, ...]) -> None:
        await marks._tree.set(path, encode_mark(wanted, marks._now_ms()))

    patch(UnderreplicationManager, "_add", add)
