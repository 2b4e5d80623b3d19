"""The proof of a login is compared by ==, whose time depends on the first byte that differs."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/security/core/test_sasl_server.py::test_secrets_are_compared_in_constant_time"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.security.core.scram_verifier import ScramVerifier

    def matches(self: ScramVerifier, password: str) -> bool:
        return ScramVerifier.of_password(password, self.salt, self.iterations).stored_key == self.stored_key

    patch(ScramVerifier, "matches", matches)
