"""A node begins any number of TLS handshakes at once, for clients of PostgreSQL and of Redis."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_client_connections_half_open.py::test_handshakes_beyond_the_rate_wait_their_turn_and_those_that_come_too_late_are_refused",
    "tests/unit/kv/resp/test_resp_connections_half_open.py::test_handshakes_beyond_the_rate_wait_their_turn[asyncio]",
]


def apply(patch: Any) -> None:
    from triplicate.security import HandshakeTurns

    async def at_once(self: HandshakeTurns, connection: object, deadline_s: float) -> bool:
        return True

    patch(HandshakeTurns, "wait", at_once)
