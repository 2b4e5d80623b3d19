"""Copies that the metadata do not name are deleted without asking whether the bookies that they do name have the entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = [
    "tests/unit/autorecovery/test_unneeded_copies.py::test_copies_stay_while_a_bookie_that_the_metadata_name_lacks_an_entry",
    "tests/unit/autorecovery/test_unneeded_copies.py::test_copies_stay_while_a_bookie_that_the_metadata_name_is_silent",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import unneeded_copies

    async def none_lack(*_: Any) -> tuple[()]:
        return ()

    patch(unneeded_copies, "lacking_by_lists", none_lack)
