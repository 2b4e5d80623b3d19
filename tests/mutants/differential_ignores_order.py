"""The comparison with PostgreSQL accepts rows in any order, so a wrong place of NULLs is not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.differential import comparison

TESTS = [
    "tests/differential/test_comparison.py::test_the_order_of_rows_counts_where_the_statement_orders_them",
    "tests/differential/test_comparison.py::test_answers_of_a_server_keep_what_differs",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    different = comparison.different_rows

    def unordered(one: Sequence[tuple[object, ...]], other: Sequence[tuple[object, ...]], *, is_ordered: bool) -> list[str]:
        return different(one, other, is_ordered=False)

    patch(comparison, "different_rows", unordered)
