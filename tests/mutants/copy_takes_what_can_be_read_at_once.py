"""A copy of the past, as of a backup, ends where the log can be read a moment later, though more was acknowledged."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [("tests/unit/sql/backup/test_past_copy.py::test_a_copy_has_what_was_acknowledged_however_late_the_leader_makes_it_readable")]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import Logs
    from triplicate.runtime import sleep

    async def acknowledged_end(self: Logs, name: str) -> int:
        await sleep(self.client.host.clock, 0.2)
        return await self.end_offset(name)

    patch(Logs, "acknowledged_end", acknowledged_end)
