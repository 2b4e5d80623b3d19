"""A client without TLS is served where TLS is required."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_client_startup.py::test_a_client_without_tls_is_refused_where_tls_is_required",
]


def apply(patch: Any) -> None:
    from triplicate.sql.pg.protocol.client_startup import ClientStartup

    patch(ClientStartup, "_check", lambda self, stream, startup: None)
