"""The server's part of the nonce is always the same, so that an old proof serves again."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_a_final_message_is_good_once",
]


def apply(patch: Any) -> None:
    from triplicate.sql.pg.protocol.role_proof import SecretNumbers

    patch(SecretNumbers, "draw", lambda self, size: bytes(size))
