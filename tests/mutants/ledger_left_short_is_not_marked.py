"""A writer that leaves a bookie without confirmed entries has no ledger marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from triplicate.client.short_copies import ShortCopies

TESTS = [
    "tests/unit/client/test_short_copies.py::test_a_ledger_with_a_bookie_that_was_left_behind_is_marked_after_the_delay",
    "tests/unit/client/test_short_copies.py::test_a_bookie_that_is_missing_when_the_ledger_is_closed_is_marked",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def note(short: ShortCopies, ledger_id: int, bookies: Iterable[str]) -> None:
        """Forget it."""

    patch(ShortCopies, "note", note)
