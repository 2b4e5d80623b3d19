"""A login of a database ends with the role as it was at its first message."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.role_login import RoleLogin
from triplicate.sql.pg.protocol.role_proof import RoleProver

TESTS = ["tests/unit/sql/pg/protocol/test_role_proof.py::test_a_role_that_changes_during_its_login_is_judged_as_it_is_at_the_end"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    real = RoleProver.authenticate

    class Remembering:
        def __init__(self, database: object) -> None:
            self._database = database
            self._found: list[RoleLogin | None] = []

        async def role_login(self, name: str) -> RoleLogin | None:
            if not self._found:
                self._found.append(await self._database.role_login(name))  # type: ignore[attr-defined]
            return self._found[0]

    async def authenticate(prover: RoleProver, stream: object, database: object, *more: object) -> object:
        return await real(prover, stream, Remembering(database) if database else None, *more)  # type: ignore[arg-type]

    patch(RoleProver, "authenticate", authenticate)
