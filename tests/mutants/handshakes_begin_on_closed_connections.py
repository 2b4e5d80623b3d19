"""A connection that ends at the moment of its turn begins a TLS handshake, whose end is never reported."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/security/test_handshake_turns.py::test_one_that_ends_at_the_moment_of_its_turn_has_ended",
]


def apply(patch: Any) -> None:
    from triplicate.security import HandshakeTurns

    wait = HandshakeTurns.wait

    async def anyway(self: HandshakeTurns, connection: Any, deadline_s: float) -> bool:
        await wait(self, connection, deadline_s)
        return True

    patch(HandshakeTurns, "wait", anyway)
