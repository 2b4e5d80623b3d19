"""An embedded copy that follows is used before it has what the log had at its opening."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/embedded/test_usable_copy.py::test_a_copy_that_follows_is_used_once_it_has_what_the_log_had",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import Logs

    async def begins(self: Logs, name: str) -> int:
        return 0

    patch(Logs, "end_offset", begins)
