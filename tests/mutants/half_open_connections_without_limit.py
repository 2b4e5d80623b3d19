"""Connections whose clients do not log in accumulate."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_half_open.py::test_a_flood_of_connections_is_bounded_and_a_client_logs_in_meanwhile",
    "tests/unit/sql/pg/protocol/test_server.py::test_connections_that_say_nothing_are_bounded",
]


def apply(patch: Any) -> None:
    from triplicate.sql.pg.protocol.half_open import HalfOpenConnections

    patch(HalfOpenConnections, "add", lambda self, connection, address: None)
