"""A role that does not exist is refused before the exchange."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_who_has_not_the_password_learns_nothing_of_the_role[unknown role]",
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_who_has_not_the_password_learns_nothing_of_the_role[unknown database]",
]


def apply(patch: Any) -> None:
    from triplicate.sql.pg.protocol.role_proof import RoleProver
    from triplicate.sql.pg.protocol.server_security import ClientRefused, RefusalReason

    verifier = RoleProver._verifier

    def talkative(self: RoleProver, login: Any, database_name: str, user: str) -> Any:
        if login is None:
            raise ClientRefused(RefusalReason.PASSWORD, "28000", f'role "{user}" does not exist')
        return verifier(self, login, database_name, user)

    patch(RoleProver, "_verifier", talkative)
