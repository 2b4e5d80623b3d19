"""A reader whose client has gone is handed on as it is, with a statement that nobody closes and the snapshot of then."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.reader_pool import HeldSnapshot

TESTS = [
    "tests/unit/sql/test_read_limits.py::test_a_statement_whose_client_goes_while_it_begins_shows_nobody_else_its_old_snapshot",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def as_it_is(self: HeldSnapshot, *, committed: bool) -> None:
        if not self._given_back:
            self._given_back = True
            self._finish_number(committed=committed)
            self._pool.give_back(self)

    patch(HeldSnapshot, "give_back", as_it_is)
