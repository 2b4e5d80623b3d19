"""A log that only publishers write is not retained."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log import Logs

TESTS = [
    "tests/unit/log/upkeep/test_truncation.py::test_a_log_that_only_publishers_write_is_retained",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def left(self: Logs, name: str, most: int) -> None:
        return

    patch(Logs, "_tidy", left)
