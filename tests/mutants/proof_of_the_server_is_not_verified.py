"""A client that logs in by DIGEST-MD5 accepts any proof of the server."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/security/core/test_sasl_client.py::test_a_server_that_does_not_know_the_password_is_refused",
    "tests/unit/security/core/test_sasl_client.py::test_a_second_challenge_is_not_answered",
]


def apply(patch: Any) -> None:
    from triplicate.security.core.sasl_client import DigestMd5Client

    answer = DigestMd5Client.answer

    def trusting(self: DigestMd5Client, token: bytes) -> bytes | None:
        return answer(self, token) if self._expected is None else None

    patch(DigestMd5Client, "answer", trusting)
