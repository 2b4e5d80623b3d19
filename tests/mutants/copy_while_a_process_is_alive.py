"""A cluster is copied while a database node or a writer still works on it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import copying

TESTS = ["tests/unit/metadata/test_copying.py::test_what_a_live_process_holds_stops_the_copy_unless_forced"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def nothing(copy: object) -> None:
        return None

    patch(copying._Copying, "refuse_live", nothing)
