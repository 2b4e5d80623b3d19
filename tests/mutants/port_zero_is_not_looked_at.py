"""A start with port 0 does not try its host: it is refused when directories and cookie are made already."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/cli/test_new_bookie.py::test_a_host_that_is_not_this_machine_is_refused_before_anything_is_made[192.0.2.7]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie import Bookie

    look = Bookie._look_at_port

    async def look_at_fixed_ports(self: Bookie) -> None:
        if self.settings.port:
            await look(self)

    patch(Bookie, "_look_at_port", look_at_fixed_ports)
