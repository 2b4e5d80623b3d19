"""The proof of a password is compared by its first byte."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/security/core/test_scram_exchange.py::test_a_byte_of_a_proof_is_not_enough",
]


def apply(patch: Any) -> None:
    import hmac

    from triplicate.security.core import scram_exchange

    class Hasty:
        digest = staticmethod(hmac.digest)

        @staticmethod
        def compare_digest(one: bytes, other: bytes) -> bool:
            return one[:1] == other[:1]

    patch(scram_exchange, "hmac", Hasty)
