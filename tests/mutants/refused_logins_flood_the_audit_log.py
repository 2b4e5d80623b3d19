"""Each refused connection writes a line to the audit log, however many there are."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_client_connections_half_open.py::test_a_flood_of_refused_connections_does_not_fill_the_audit_log",
    "tests/unit/kv/resp/test_resp_connections_half_open.py::test_a_flood_of_refused_connections_does_not_fill_the_audit_log",
]


def apply(patch: Any) -> None:
    from triplicate.security import refusal_lines

    patch(refusal_lines, "REFUSALS_PER_S", 1_000_000)
