"""A client that was not offered channel binding is accepted by a server that has offered it."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_a_first_message_that_contradicts_the_offer_is_refused[SCRAM-SHA-256-y,,n=,r=nonce-thinks that the server does not]",
]


def apply(patch: Any) -> None:
    from triplicate.security.core.scram_exchange import ScramExchange

    check = ScramExchange._check_header

    def careless(flag: str, mechanism: str, end_point: bytes | None) -> None:
        check("n" if flag == "y" else flag, mechanism, end_point)

    patch(ScramExchange, "_check_header", staticmethod(careless))
