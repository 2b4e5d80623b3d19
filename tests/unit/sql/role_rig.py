"""Roles in a database of a test, by the engine's sessions."""

from __future__ import annotations

from collections.abc import Sequence

from tests.unit.sql.cluster import run
from triplicate.sql import SqlDatabase, SqlSession
from triplicate.sql.core.audit import ConnectedClient
from triplicate.sql.core.interface import Prepared, StatementKind
from triplicate.sql.core.rights import Action
from triplicate.sql.core.role_commands import ChangeGrants, CreateRole, RoleCommand


async def command(session: SqlSession, change: RoleCommand, tag: str = "GRANT") -> None:
    """Run a change of roles or rights."""
    await session.start(Prepared("", StatementKind.SCHEMA, (), (), tag, command=change), ())


def grant(relations: Sequence[str], role: str, *actions: Action, grants: bool = True) -> ChangeGrants:
    return ChangeGrants(grants, frozenset(actions), (role,), tuple(relations))


def grant_create(role: str) -> ChangeGrants:
    return ChangeGrants(True, frozenset((Action.CREATE,)), (role,), on_database=True)


async def with_roles(database: SqlDatabase, *roles: str) -> SqlSession:
    """An administrator's session with a database that has these roles, and tables ``t`` and ``secret`` with a row each."""
    admin = await database.session()
    for role in roles:
        await command(admin, CreateRole(role, {"can_login": True}))
    for table in ("t", "secret"):
        await run(admin, f"create table {table}(id integer primary key, v text)")
        await run(admin, f"insert into {table} values(1, '{table}')")
    return admin


async def session_of(database: SqlDatabase, role: str) -> SqlSession:
    """The session of a role that has proven that it is the role."""
    return await database.session(client=ConnectedClient(database.name, role, "192.0.2.1", is_authenticated=True))
