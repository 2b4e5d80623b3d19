"""A proof is accepted that is bound to another server's certificate."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_a_proof_is_bound_to_the_servers_certificate",
    "tests/unit/security/core/test_scram_exchange.py::test_a_proof_of_another_connection_is_refused",
]


def apply(patch: Any) -> None:
    from triplicate.security.core import scram_exchange

    class Careless(scram_exchange.ScramExchange):
        def final(self, message: bytes) -> str | None:
            found = scram_exchange._FINAL.fullmatch(message.decode())
            if found is not None:
                self._binding = scram_exchange._from_base64(found["binding"])
            return super().final(message)

    patch(scram_exchange.ScramExchange, "final", Careless.final)
