"""A rollback of a DB-API connection commits."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/dbapi/test_connection.py::test_a_rollback_undoes_the_transaction[triplicate]",
    "tests/unit/dbapi/test_connection.py::test_the_block_of_a_connection_is_a_transaction[triplicate]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.dbapi.connection_calls import ConnectionCalls

    patch(ConnectionCalls, "roll_back", ConnectionCalls.commit)
