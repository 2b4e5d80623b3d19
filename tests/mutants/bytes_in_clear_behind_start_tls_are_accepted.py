"""A client accepts bytes that came in clear behind the answer to START_TLS."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/client/connection/test_handshake.py::test_a_bookie_that_answers_start_tls_and_goes_on_in_clear_is_not_used",
]


def apply(patch: Any) -> None:
    from triplicate.client.connection.handshake import Handshake

    received = Handshake.data_received

    def forgetful(self: Handshake, data: bytes) -> None:
        received(self, data)
        self._others = 0

    patch(Handshake, "data_received", forgetful)
