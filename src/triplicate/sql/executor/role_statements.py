"""CREATE ROLE, GRANT and their kin on the leader's writing connection, with the checks of the role that runs them.

Source: PostgreSQL 15 documentation; for roles with CREATEROLE the rules of PostgreSQL 16: they administer the roles that they have made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from triplicate.errors import SqlError
from triplicate.sql.core.access_rights import (
    ADMINISTRATOR,
    ALL_ON_DATABASE,
    ALL_ON_TABLE,
    DATABASE,
    PREDEFINED,
    PUBLIC,
    RESERVED_NAMES,
    AccessRights,
    Membership,
    StoredRole,
    missing_role,
)
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
from triplicate.sql.executor.stored_access import StoredAccess

_ROLES_MAX = 10_000
_OWN_ATTRIBUTES = frozenset(("verifier",))
"""Attributes that every role may change of itself."""


def with_attributes(role: StoredRole, attributes: Mapping[str, Any]) -> StoredRole:
    """The role with other values of some fields."""
    return replace(role, **attributes)


class RoleStatements:
    """Runs such commands inside the open transaction.

    Args:
        relations: finds the tables and views: maps the name in lower case to (name, kind).
    """

    def __init__(self, access: StoredAccess, relations: Any) -> None:
        self._access = access
        self._relations = relations

    @property
    def _now(self) -> AccessRights:
        return self._access.current

    def run(self, command: RoleCommand, role: str | None) -> None:
        """Run one command.

        Args:
            role: runs it; None for the administrator.

        Raises:
            SqlError: 42501, the role may not do it; 42704, 42710, 42P01, 2BP01, 0LP01, ….
        """
        match command:
            case CreateRole():
                self._create(command, role)
            case AlterRole():
                self._alter(command, role)
            case RenameRole():
                self._rename(command, role)
            case DropRoles():
                self._drop(command, role)
            case ChangeGrants():
                self._change_grants(command, role)
            case ChangeMembers():
                self._change_members(command, role)
            case ChangeOwner():
                self._change_owner(command, role)
            case ReassignOwned():
                self._reassign(command, role)

    def _is_superuser(self, role: str | None) -> bool:
        return role is None or self._now.is_superuser(role)

    # Roles.

    def _create(self, command: CreateRole, role: str | None) -> None:
        if role is not None and not self._now.may_create_roles(role):
            raise SqlError("42501", "permission denied to create role")
        self._check_new_name(command.name)
        if len(self._now.roles) >= _ROLES_MAX:
            raise SqlError("54000", f"a database may have {_ROLES_MAX} roles")
        self._check_attributes(command.attributes, role)
        self._access.store_role(with_attributes(StoredRole(command.name), command.attributes))
        if role is not None and not self._is_superuser(role):
            self._access.store_member(command.name, role, Membership(is_member=False, is_admin=True))
        if command.member_of:
            self._change_members(ChangeMembers(True, command.member_of, (command.name,)), role)
        if command.members:
            self._change_members(ChangeMembers(True, (command.name,), command.members), role)

    def _check_new_name(self, name: str) -> None:
        if name.lower().startswith("pg_") or name.lower() in RESERVED_NAMES:
            raise SqlError("42939", f'role name "{name}" is reserved')
        if not name or len(name.encode()) > 63:
            raise SqlError("42602", "the name of a role has 1 to 63 bytes")
        if self._now.exists(name):
            raise SqlError("42710", f'role "{name}" already exists')

    def _check_attributes(self, attributes: Mapping[str, object], role: str | None) -> None:
        if attributes.get("is_superuser") and not self._is_superuser(role):
            raise SqlError("42501", "must be superuser to create superusers")

    def _alter(self, command: AlterRole, role: str | None) -> None:
        stored = self._stored(command.name, role)
        if role is not None and not self._may_change(role, stored):
            is_own = role == command.name and set(command.attributes) <= _OWN_ATTRIBUTES
            if not is_own:
                raise SqlError("42501", "permission denied to alter role")
        if "is_superuser" in command.attributes and not self._is_superuser(role):
            raise SqlError("42501", "must be superuser to change the superuser attribute")
        self._access.store_role(with_attributes(stored, command.attributes))

    def _stored(self, name: str, role: str | None) -> StoredRole:
        if name in PREDEFINED and not self._is_superuser(role):
            raise SqlError("42501", "permission denied to alter role")
        if name in PREDEFINED:
            raise SqlError("42939", f'role name "{name}" is reserved')
        return self._now.role(name)

    def _may_change(self, role: str, other: StoredRole) -> bool:
        if self._is_superuser(role):
            return True
        return self._now.may_create_roles(role) and self._now.administers(role, other.name) and not other.is_superuser

    def _rename(self, command: RenameRole, role: str | None) -> None:
        stored = self._stored(command.name, role)
        if role is not None and not self._may_change(role, stored):
            raise SqlError("42501", "permission denied to rename role")
        if role == command.name:
            raise SqlError("0A000", "current user cannot be renamed")
        self._check_new_name(command.new_name)
        self._access.rename_role(command.name, replace(stored, name=command.new_name))

    def _drop(self, command: DropRoles, role: str | None) -> None:
        if role is not None and not self._now.may_create_roles(role):
            raise SqlError("42501", "permission denied to drop role")
        for name in command.names:
            if command.if_exists and not self._now.exists(name):
                continue
            stored = self._stored(name, role)
            if role is not None and not self._may_change(role, stored):
                raise SqlError("42501", "must be superuser to drop superusers" if stored.is_superuser else "permission denied to drop role")
            if role == name:
                raise SqlError("55006", "current user cannot be dropped")
            depending = self._now.depending(name)
            if depending:
                raise SqlError(
                    "2BP01",
                    f'role "{name}" cannot be dropped because some objects depend on it',
                    detail="\n".join(depending[:100]),
                    hint="REASSIGN OWNED gives its tables to another role; REVOKE takes its privileges.",
                )
            self._access.drop_role(name)

    # Rights.

    def _check_grantee(self, name: str) -> None:
        if name != PUBLIC and not self._now.exists(name):
            raise missing_role(name)

    def _change_grants(self, command: ChangeGrants, role: str | None) -> None:
        for grantee in command.grantees:
            self._check_grantee(grantee)
        if command.on_database:
            if not self._is_superuser(role):
                raise SqlError("42501", "permission denied for database")
            for grantee in command.grantees:
                self._change_grant(DATABASE, grantee, command.actions & ALL_ON_DATABASE, grants=command.grants)
            return
        relations: Mapping[str, tuple[str, str]] = self._relations()
        names = [name for name, _ in relations.values()] if command.relations is None else command.relations
        for name in names:
            found = relations.get(name.lower())
            if found is None:
                raise SqlError("42P01", f'relation "{name}" does not exist')
            relation, kind = found
            if role is not None and not self._now.owns(role, relation):
                raise SqlError("42501", f"permission denied for {kind} {relation}")
            for grantee in command.grantees:
                self._change_grant(relation, grantee, command.actions & ALL_ON_TABLE, grants=command.grants)

    def _change_grant(self, relation: str, grantee: str, actions: frozenset[Any], *, grants: bool) -> None:
        before = self._now.granted(relation, grantee)
        after = before | actions if grants else before - actions
        if after != before:
            self._access.store_grants(relation, grantee, after)

    def _change_members(self, command: ChangeMembers, role: str | None) -> None:
        for name in (*command.roles, *command.members):
            if name == PUBLIC or not self._now.exists(name):
                raise missing_role(name or "public")
        for granted in command.roles:
            if role is not None and not self._may_grant(role, granted):
                word = "grant" if command.grants else "revoke"
                raise SqlError("42501", f'permission denied to {word} role "{granted}"')
            for member in command.members:
                self._change_member(command, granted, member)

    def _may_grant(self, role: str, granted: str) -> bool:
        if self._is_superuser(role):
            return True
        return not self._now.is_superuser(granted) and self._now.administers(role, granted)

    def _change_member(self, command: ChangeMembers, granted: str, member: str) -> None:
        before = self._now.members.get((granted, member))
        if command.grants:
            if granted == member or self._now.is_member(granted, member):
                raise SqlError("0LP01", f'role "{granted}" is a member of role "{member}"')
            after: Membership | None = Membership(is_admin=command.admin or (before is not None and before.is_admin))
        elif command.admin and before is not None:
            after = Membership(before.is_member, is_admin=False) if before.is_member else None
        else:
            after = None
        if after != before:
            self._access.store_member(granted, member, after)

    # Owners.

    def _change_owner(self, command: ChangeOwner, role: str | None) -> None:
        found = self._relations().get(command.relation.lower())
        if found is None:
            raise SqlError("42P01", f'relation "{command.relation}" does not exist')
        relation, kind = found
        if role is not None and not self._now.owns(role, relation):
            raise SqlError("42501", f"must be owner of {kind} {relation}")
        self._access.store_owner(relation, self._new_owner(command.owner, role))

    def _is_administrator(self, name: str) -> bool:
        return name == ADMINISTRATOR and name not in self._now.roles  # An earlier release may have stored a role of this name.

    def _new_owner(self, owner: str, role: str | None) -> str | None:
        """The role that becomes an owner; None for the administrator."""
        if self._is_administrator(owner):
            if not self._is_superuser(role):
                raise SqlError("42501", f'must be member of role "{owner}"')
            return None
        if owner not in self._now.roles:
            raise missing_role(owner)
        if not self._is_superuser(role) and not self._now.is_member(role or "", owner):
            raise SqlError("42501", f'must be member of role "{owner}"')
        return owner

    def _reassign(self, command: ReassignOwned, role: str | None) -> None:
        owners = {None if self._is_administrator(owner) else self._now.role(owner).name for owner in command.owners}
        for owner in command.owners:
            if not self._is_superuser(role) and not self._now.is_member(role or "", owner):
                raise SqlError("42501", "permission denied to reassign objects")
        new_owner = self._new_owner(command.new_owner, role)
        for relation in self._relations():
            if self._now.owner(relation) in owners - {new_owner}:
                self._access.store_owner(relation, new_owner)
