"""A bookie whose registration cannot be decoded is left out of those that are registered."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import BookieRegistry, RegisteredBookies

TESTS = [
    "tests/unit/autorecovery/test_auditor_unreadable_registrations.py::test_the_auditor_does_not_take_it_for_lost",
    "tests/unit/autorecovery/test_auditor_unreadable_registrations.py::test_a_pass_over_all_lost_bookies_leaves_it_out",
    "tests/unit/autorecovery/test_auditor_unreadable_registrations.py::test_a_worker_leaves_its_fragments_and_the_mark",
    "tests/unit/autorecovery/test_auditor_unreadable_registrations.py::test_a_check_does_not_mark_it_for_its_silence",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def registered(self: BookieRegistry) -> RegisteredBookies:
        return RegisteredBookies(await self.writable(), await self.readonly(), {})

    patch(BookieRegistry, "registered", registered)
