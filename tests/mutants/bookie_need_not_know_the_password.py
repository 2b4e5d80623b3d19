"""A client that logs in by SCRAM accepts any proof of the bookie, and computes any number of iterations for it."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/client/connection/test_handshake_false_bookies.py::test_a_bookie_that_cannot_prove_that_it_knows_the_verifier_gets_no_request",
    "tests/unit/client/connection/test_handshake_false_bookies.py::test_a_bookie_that_asks_for_much_work_gets_no_request",
]


def apply(patch: Any) -> None:
    from triplicate.security.core.sasl_client import ScramSha256Client

    answer = ScramSha256Client.answer

    def careless(self: ScramSha256Client, token: bytes) -> bytes | None:
        return None if self._has_proven else answer(self, token)

    patch(ScramSha256Client, "answer", careless)
    patch(ScramSha256Client, "_check_iterations", lambda self: None)
