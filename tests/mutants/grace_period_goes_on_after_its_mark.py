"""A grace period goes on although its mark was deleted, so that the next loss has none."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery.core.writer_presence import FirstViews, OpenLedgerView

TESTS = [
    "tests/unit/autorecovery/test_worker_open_ledgers.py::test_a_second_loss_has_a_grace_period_of_its_own",
    "tests/unit/autorecovery/core/test_writer_presence.py::test_a_view_counts_only_for_the_mark_under_which_it_was_seen",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    first = FirstViews.first

    def of_any_mark(views: FirstViews, ledger_id: int, marked_ms: int, present: OpenLedgerView) -> OpenLedgerView:
        return first(views, ledger_id, 0, present)

    patch(FirstViews, "first", of_any_mark)
