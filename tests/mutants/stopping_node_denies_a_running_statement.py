"""A node that stops answers 57P01 to a client whose change is already with the log: the client reads that nothing was stored."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import client_connections

TESTS = ["tests/unit/sql/pg/protocol/test_server.py::test_a_stop_ends_idle_clients_with_57p01_and_a_running_statement_as_unknown"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(client_connections, "_interrupted", client_connections._stopping)
