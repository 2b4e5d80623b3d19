"""A client has any time to log in."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_client_startup.py::test_a_client_that_does_not_answer_is_closed_in_time",
]


def apply(patch: Any) -> None:
    from triplicate.sql.pg.protocol.client_connections import ClientConnections

    patch(ClientConnections, "_end_late", lambda self, stream: None)
