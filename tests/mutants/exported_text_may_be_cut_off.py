"""An exported text is imported also where its end is missing."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup.core import sql_text

TESTS = ["tests/unit/sql/backup/core/test_sql_text.py::test_a_text_is_known_by_its_first_and_last_line"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(sql_text, "is_cut_off", lambda begin, end: False)
