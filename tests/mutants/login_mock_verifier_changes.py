"""The salt of a role that does not exist is another one at each login."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_who_has_not_the_password_learns_nothing_of_the_role[unknown role]",
]


def apply(patch: Any) -> None:
    import os

    from triplicate.sql.pg.protocol import role_proof

    mock = role_proof.mock_verifier  # type: ignore[attr-defined]
    patch(role_proof, "mock_verifier", lambda secret, name: mock(os.urandom(8), name))
