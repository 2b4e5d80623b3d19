"""A client logs in with any proof of the right form."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_who_has_not_the_password_learns_nothing_of_the_role[wrong password]",
    "tests/unit/security/core/test_scram_exchange.py::test_another_password_proves_nothing",
]


def apply(patch: Any) -> None:
    from triplicate.security.core.scram_exchange import ScramExchange

    def careless(self: ScramExchange, message: bytes) -> str | None:
        return "v=AAAA"

    patch(ScramExchange, "final", careless)
