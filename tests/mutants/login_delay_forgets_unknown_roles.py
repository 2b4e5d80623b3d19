"""A failed login of an unknown role is not counted against its address."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_an_unknown_role_takes_as_long_as_a_wrong_password",
]


def apply(patch: Any) -> None:
    from triplicate.sql.pg.protocol.role_proof import RoleProver
    from triplicate.sql.pg.protocol.server_security import ClientRefused, RefusalReason

    failure = RoleProver._failure

    async def hasty(self: RoleProver, address: str, login: Any, user: str) -> ClientRefused:
        if login is None:
            return ClientRefused(RefusalReason.PASSWORD, "28P01", f'password authentication failed for user "{user}"')
        return await failure(self, address, login, user)

    patch(RoleProver, "_failure", hasty)
