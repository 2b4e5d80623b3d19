"""A DB-API connection that is dropped without being closed keeps its session, and others wait for its transaction."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/dbapi/test_connection.py::test_a_dropped_connection_gives_up_its_transaction",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.dbapi.connection_calls import ConnectionCalls

    patch(ConnectionCalls, "abandon", lambda self: None)
