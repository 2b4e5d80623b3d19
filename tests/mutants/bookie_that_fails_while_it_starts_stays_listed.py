"""A bookie whose journal failed before its start ended never withdraws: it stays in the list of bookies."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/test_bookie_failed_sync.py::test_a_bookie_whose_journal_fails_during_its_start_leaves_the_list_of_bookies",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.bookie import Failure

    def call_from_now_on(self: Failure, react: Callable[[], None]) -> None:
        self._react = react

    patch(Failure, "call", call_from_now_on)
