"""Regular expressions are matched by Python's module, which backtracks and holds the interpreter."""

from __future__ import annotations

import re
from collections.abc import Callable

from triplicate.sql.pg.values.regular_expressions import Matcher

TESTS = [
    # Only this case: others would not end.
    "tests/unit/sql/pg/values/test_regular_expressions.py::test_no_expression_takes_more_than_linear_time[(a|a)*[bc]-aaaaaaaaaaaaaaaaaaaaaaaaa]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def compile_by_python(self: Matcher, pattern: str, _ignores_case: bool) -> None:
        self._compiled = re.compile(pattern)

    patch(Matcher, "__init__", compile_by_python)
    patch(Matcher, "matches", lambda self, text: self._compiled.search(text) is not None)
