"""The auditor regards only writable bookies as registered."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import BookieRegistry, RegisteredBookies

TESTS = ["tests/unit/autorecovery/test_auditor.py::test_a_read_only_bookie_is_not_lost"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def registered(self: BookieRegistry) -> RegisteredBookies:
        return RegisteredBookies(await self.writable(), {}, {})

    patch(BookieRegistry, "registered", registered)
