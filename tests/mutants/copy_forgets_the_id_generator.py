"""A copied cluster starts its ledger ids from the beginning, so ids are given a second time."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import copying

TESTS = ["tests/unit/metadata/test_copying.py::test_a_long_generator_goes_on_behind_what_it_gave_out"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def nothing(self: object) -> None:
        return

    patch(copying._Copying, "_set_generator", nothing)
