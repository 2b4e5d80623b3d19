"""A reader connection is reused after its client left, with an open statement and its old snapshot."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.reader_pool import ReaderCheckout

TESTS = [
    "tests/unit/sql/executor/test_reader_pool_limits.py::test_a_statement_whose_client_goes_while_it_begins_shows_nobody_else_its_old_snapshot",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def as_it_is(self: ReaderCheckout, *, committed: bool) -> None:
        if not self._returned:
            self._returned = True
            self._finish_number(committed=committed)
            self._pool.check_in(self)

    patch(ReaderCheckout, "return_reader", as_it_is)
