"""Only errors that the engine finds fail the transaction, so what was done before a bad parameter is committed."""

from __future__ import annotations

from collections.abc import Callable

from tests.unit.sql.pg.local_engine import LocalSession
from triplicate.sql.engine.session import SqlSession

TESTS = ["tests/unit/sql/pg/protocol/test_server.py::test_an_error_anywhere_fails_the_transaction"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    for session in (LocalSession, SqlSession):
        patch(session, "fail", lambda self: None)
