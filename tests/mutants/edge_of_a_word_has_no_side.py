"""The beginning of a word, in a regular expression, is found at the end of one as well."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.values import regular_expressions

TESTS = ["tests/unit/sql/pg/values/test_regular_expressions.py::test_a_wrong_or_unavailable_expression_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def escaped(self: regular_expressions._Translation) -> regular_expressions._Element:
        character = self._peek()
        if character in "mMyAZ" and character:
            self._at += 1
            return regular_expressions._Element(regular_expressions._CONSTRAINTS[character], is_constraint=True)
        return self._set(self._escape())

    patch(regular_expressions._Translation, "_escaped", escaped)
