"""A node begins any number of TLS handshakes at once."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_client_connections_half_open.py::test_handshakes_beyond_the_rate_wait_their_turn_and_those_that_come_too_late_are_refused",
]


def apply(patch: Any) -> None:
    from triplicate.security import TokenBucket
    from triplicate.sql.pg.protocol.client_startup import ClientStartup

    begin = ClientStartup.__init__

    def without_limit(self: ClientStartup, *arguments: Any) -> None:
        begin(self, *arguments)
        self._handshakes = TokenBucket(1_000_000, 0.0)

    patch(ClientStartup, "__init__", without_limit)
