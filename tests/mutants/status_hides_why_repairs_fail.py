"""The status of the cluster does not show why the repair of a ledger did not end well."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.overview.core import status_screen
from triplicate.cli.overview.core.cluster_facts import MarkFacts

TESTS = ["tests/unit/cli/overview/core/test_status_screen.py::test_the_reason_of_a_failed_repair_is_shown_and_cut_to_the_width"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    cells = status_screen._mark_cells

    def reasonless(mark: MarkFacts, now_ms: int, has_reasons: bool) -> tuple[str, ...]:
        return (*cells(mark, now_ms, False), "-") if has_reasons else cells(mark, now_ms, False)

    patch(status_screen, "_mark_cells", reasonless)
