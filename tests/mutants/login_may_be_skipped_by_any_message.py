"""A client that sends another message in place of a proof is served."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_what_is_no_answer_to_the_offer_ends_the_connection",
]


def apply(patch: Any) -> None:
    from triplicate.sql.core.role_login import RoleLogin
    from triplicate.sql.pg.protocol.role_proof import ProvenRole, RoleProver

    async def careless(self: RoleProver, stream: Any, database: Any, database_name: str, user: str) -> ProvenRole:
        return ProvenRole(RoleLogin(user, None), "none")

    patch(RoleProver, "authenticate", careless)
