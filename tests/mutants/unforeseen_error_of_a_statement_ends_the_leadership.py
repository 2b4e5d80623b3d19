"""The writer takes only some errors for errors of a client's statement; any other ends the leadership."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.errors import SqlError
from triplicate.sql.executor import writer_connection

TESTS = [
    "tests/unit/sql/engine/test_leadership.py::test_whatever_a_statement_raises_undoes_the_statement_only",
    "tests/unit/sql/engine/test_leadership.py::test_a_result_that_cannot_be_encoded_undoes_its_statement_only",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(writer_connection, "FAULTS", (apsw.Error, SqlError, UnicodeError, OverflowError, TypeError, ValueError))
