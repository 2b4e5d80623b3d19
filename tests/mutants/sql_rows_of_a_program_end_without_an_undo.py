"""An error of the program's own rows leaves the runs before it in the transaction, which commits them."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/engine/test_in_process_session.py::test_rows_that_end_with_an_error_of_the_program_change_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine import in_process_session

    patch(in_process_session, "_supplied", lambda rows, errors: rows)
