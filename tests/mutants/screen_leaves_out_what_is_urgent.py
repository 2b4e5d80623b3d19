"""A screen that is too small keeps the first rows and leaves out those with problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.cli.overview.core import text_table
from triplicate.cli.overview.core.text_table import TableRow

TESTS = [
    "tests/unit/cli/overview/core/test_text_table.py::test_rows_that_do_not_fit_are_counted_and_urgent_ones_stay",
    "tests/unit/cli/overview/core/test_status_screen.py::test_a_large_cluster_fits_the_screen_and_nothing_urgent_is_left_out",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def first_rows(rows: Sequence[TableRow], room: int) -> tuple[list[TableRow], int]:
        return (list(rows), 0) if len(rows) <= room else (list(rows[: room - 1]), len(rows) - room + 1)

    patch(text_table, "kept_rows", first_rows)
