"""An ungrouped column has the value of an arbitrary row of its group, as in SQLite."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.analysis import analyzer

TESTS = ["tests/unit/sql/pg/translate/test_translation.py::test_what_cannot_mean_the_same_is_refused[select b, a from t group by b-42803]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(analyzer, "check_grouped", lambda *_: None)
