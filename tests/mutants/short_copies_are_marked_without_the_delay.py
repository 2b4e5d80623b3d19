"""A bookie that is only restarted has its copies made elsewhere, since a writer marks the ledger at once."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.short_copies import ShortCopies

TESTS = [
    "tests/unit/client/test_short_copies.py::test_the_mark_waits_for_the_delay_and_not_for_longer_than_the_client_lives",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def delay_s(short: ShortCopies) -> float:
        return 0.0

    patch(ShortCopies, "_delay_s", delay_s)
