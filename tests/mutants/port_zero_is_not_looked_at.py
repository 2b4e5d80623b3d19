"""A start with port 0 does not check its host before it makes directories and cookie."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/cli/server_commands/test_doctor_command_new_bookie.py::test_a_host_that_is_not_this_machine_is_refused_before_anything_is_made[192.0.2.7]"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.bookie import BookieStart

    check = BookieStart._check_port

    async def check_fixed_ports(self: BookieStart) -> None:
        if self._settings.port:
            await check(self)

    patch(BookieStart, "_check_port", check_fixed_ports)
