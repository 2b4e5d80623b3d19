"""A worker keeps the first views of ledgers that others finished for as long as it runs."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/autorecovery/core/test_writer_presence.py::test_views_of_ledgers_that_are_looked_at_no_more_are_dropped"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.core.writer_presence import FirstViews

    def keep(views: FirstViews, ledger_id: int, kept: object) -> None:
        views._views[ledger_id] = kept  # type: ignore[assignment]

    patch(FirstViews, "_keep", keep)
