"""A start finds its port in use only after it has opened and changed its index and journal."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/cli/server_commands/test_doctor_command.py::test_a_port_in_use_is_found"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.bookie import BookieStart

    async def believe(self: BookieStart) -> None:
        return None

    patch(BookieStart, "_check_port", believe)
