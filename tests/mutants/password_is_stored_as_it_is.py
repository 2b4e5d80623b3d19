"""A password is stored in the place of its verifier."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/engine/test_session_rights.py::test_a_password_becomes_a_verifier_before_it_is_stored"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine import session

    def verifier_text(password: str, salt: bytes) -> str:
        return password

    patch(session, "verifier_text", verifier_text)
