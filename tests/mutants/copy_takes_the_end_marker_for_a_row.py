"""The line that ends the data of COPY is stored as a row."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.values import copy_lines

TESTS = ["tests/unit/sql/pg/values/test_copy_text.py::test_text", "tests/unit/sql/pg/values/test_copy_csv.py::test_csv"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(copy_lines, "_END_MARKER", "never in the data")
