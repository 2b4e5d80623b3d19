"""CREATE ROLE, GRANT, SET ROLE and their kin on one connection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from triplicate.errors import SqlError
from triplicate.sql.core.access_rights import ADMINISTRATOR, PUBLIC
from triplicate.sql.core.interface import Prepared, StatementKind, TransactionStatus
from triplicate.sql.core.role_commands import (
    AlterRole,
    ChangeGrants,
    ChangeMembers,
    ChangeOwner,
    CreateRole,
    DropRoles,
    ReassignOwned,
    RenameRole,
    RoleCommand,
)
from triplicate.sql.core.session_roles import SessionRoles
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.implicit_transaction import ImplicitTransaction
from triplicate.sql.pg.protocol.setting_commands import SettingCommands
from triplicate.sql.pg.syntax.role_statement import CURRENT_USER, SESSION_USER, Password, RoleStatement


class RoleChangeCommand:
    """Runs the statements of roles and rights of one connection."""

    def __init__(self, state: ConnectionState, transaction: ImplicitTransaction, settings: SettingCommands) -> None:
        self._state = state
        self._transaction = transaction
        self._settings = settings

    async def run(self, statement: RoleStatement, *, commits: bool) -> None:
        """Run a change of roles or rights, and send the completion.

        Args:
            commits: whether a transaction that begins here is committed before the completion is sent.

        Raises:
            SqlError: 25006 on a node that follows and in a read-only transaction; 3D000, another database is named; and as the engine.
        """
        state, session = self._state, self._state.session
        if session.status is TransactionStatus.FAILED:
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        if statement.database is not None and statement.database != state.database.name:
            raise SqlError(
                "3D000", f'database "{statement.database}" does not exist', hint="Rights are granted in each database by itself."
            )
        roles = session.roles
        prepared = Prepared("", StatementKind.SCHEMA, (), (), statement.tag)
        session.check_prepared(prepared)
        self._settings.check_access(prepared, "")
        command = _resolved(statement.command, roles, state.settings.user)
        self._check_session(command)
        if statement.password is not None:
            command = await self._with_password(command, statement.password)
        commits = commits and session.status is TransactionStatus.IDLE
        await self._transaction.begin()
        await session.start(replace(prepared, command=command), ())
        if commits:
            await self._transaction.commit()
        state.stream.write(wire.command_complete(statement.tag))

    def _check_session(self, command: RoleCommand) -> None:
        if isinstance(command, DropRoles):
            roles, access = self._state.session.roles, self._state.session.access
            may_drop = roles.acting is None or access.may_create_roles(roles.acting)
            if may_drop and roles.session_user in command.names and access.exists(roles.session_user):
                raise SqlError("55006", "session user cannot be dropped")
            for name in command.names:
                if command.if_exists and not self._state.session.access.exists(name):
                    self._state.stream.write(wire.notice_response("00000", f'role "{name}" does not exist, skipping'))

    async def _with_password(self, command: RoleCommand, password: Password) -> RoleCommand:
        assert isinstance(command, CreateRole | AlterRole), "other commands have no password"
        verifier: str | None = None
        if password.text == "":
            self._state.stream.write(wire.notice_response("00000", "empty string is not a valid password, clearing password"))
        elif password.text is not None:
            verifier = await self._state.session.verifier_of(password.text)
        return replace(command, attributes={**command.attributes, "verifier": verifier})


def _resolved(command: RoleCommand, roles: SessionRoles, user: str) -> RoleCommand:
    """The command with names in the places of CURRENT_USER and SESSION_USER."""

    def one(name: str) -> str:
        if name == CURRENT_USER:
            return roles.current_user or user
        return (roles.session_user or user) if name == SESSION_USER else name

    def owner(name: str) -> str:
        """The administrator owns under the name under which it is shown, and not under the one with which it has logged in."""
        role = {CURRENT_USER: roles.acting, SESSION_USER: roles.session_role}.get(name, name)
        return ADMINISTRATOR if role is None else role

    def all_of(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name if name == PUBLIC else one(name) for name in names)

    match command:
        case CreateRole():
            return replace(command, member_of=all_of(command.member_of), members=all_of(command.members))
        case AlterRole() | RenameRole():
            return replace(command, name=one(command.name))
        case DropRoles():
            return replace(command, names=all_of(command.names))
        case ChangeGrants():
            return replace(command, grantees=all_of(command.grantees))
        case ChangeMembers():
            return replace(command, roles=all_of(command.roles), members=all_of(command.members))
        case ChangeOwner():
            return replace(command, owner=owner(command.owner))
        case ReassignOwned():
            return replace(command, owners=tuple(map(owner, command.owners)), new_owner=owner(command.new_owner))
