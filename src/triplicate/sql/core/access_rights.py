"""The roles of a database, and the rights that each has. Pure.

One `AccessRights` is one state of them. Each copy of a database has the state at its position of the log, and a change of roles or rights
makes another object, so its identity shows whether anything has changed.

Source: PostgreSQL 15 documentation, "Database Roles" and "Predefined Roles"; for CREATEROLE the rules of PostgreSQL 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from triplicate.errors import SqlError
from triplicate.sql.core.rights import DATABASE_ACTIONS, TABLE_ACTIONS, Action, Right
from triplicate.sql.core.role_login import NO_LIMIT, RoleLogin

PUBLIC = ""
"""The grantee that stands for every role."""
DATABASE = ""
"""The relation that stands for the database itself."""
READ_ALL, WRITE_ALL = "pg_read_all_data", "pg_write_all_data"
PREDEFINED = (READ_ALL, WRITE_ALL)
ADMINISTRATOR = "triplicate"
"""The name under which the administrator is shown. It is no role of the database, and owns what no role owns."""
RESERVED_NAMES = (ADMINISTRATOR, "public", "none", "current_user", "current_role", "session_user", "user")
_WRITES = (Action.INSERT, Action.UPDATE, Action.DELETE)
_PUBLIC_AT_FIRST = frozenset((Action.CONNECT,))
"""Privileges on the database that every role has until they are revoked from PUBLIC."""


@dataclass(frozen=True, slots=True)
class StoredRole:
    """One role that is stored in the database."""

    name: str
    verifier: str | None = field(default=None, repr=False)
    """See `RoleLogin.verifier`."""
    can_login: bool = False
    is_superuser: bool = False
    can_create_roles: bool = False
    valid_until_us: int | None = None
    connection_limit: int = NO_LIMIT

    @property
    def login(self) -> RoleLogin:
        """The facts that its login needs."""
        return RoleLogin(self.name, self.verifier, self.can_login, self.is_superuser, self.valid_until_us, self.connection_limit)


@dataclass(frozen=True, slots=True)
class Membership:
    """A role's membership in another. `is_member`: it has the other's rights. `is_admin`: it may grant the other role, and change it."""

    is_member: bool = True
    is_admin: bool = False


Members = Mapping[tuple[str, str], Membership]
"""Maps (role, member) to the membership."""
Grants = Mapping[tuple[str, str], frozenset[Action]]
"""Maps (relation in lower case, or `DATABASE`; grantee, or `PUBLIC`) to the privileges."""


class AccessRights:
    """Args:
    roles: by name. owners: maps a relation's name in lower case to its owner; the administrator owns all others.
    """

    def __init__(
        self,
        roles: Iterable[StoredRole] = (),
        members: Members | None = None,
        grants: Grants | None = None,
        owners: Mapping[str, str] | None = None,
    ) -> None:
        self.roles: Mapping[str, StoredRole] = {role.name: role for role in roles}
        self.members: Members = dict(members or {})
        self.grants: Grants = dict(grants or {})
        self.owners: Mapping[str, str] = dict(owners or {})
        self._inherited: dict[str, frozenset[str]] = {}

    # Roles.

    def exists(self, name: str) -> bool:
        """Whether there is such a role, stored or predefined."""
        return name in self.roles or name in PREDEFINED

    def role(self, name: str) -> StoredRole:
        """A stored role. Raises SqlError 42704 if there is none of this name."""
        found = self.roles.get(name)
        if found is None:
            raise missing_role(name)
        return found

    def is_superuser(self, name: str) -> bool:
        """Whether a role may do everything. As in PostgreSQL, a membership does not give this."""
        role = self.roles.get(name)
        return role is not None and role.is_superuser

    def may_create_roles(self, name: str) -> bool:
        role = self.roles.get(name)
        return role is not None and (role.can_create_roles or role.is_superuser)

    def roles_of(self, name: str) -> frozenset[str]:
        """The role, and all roles whose rights it has by membership. Empty for a role that does not exist (any more)."""
        found = self._inherited.get(name)
        if found is None:
            found = self._inherited[name] = self._closure(name)
        return found

    def _closure(self, name: str) -> frozenset[str]:
        found = {name} if self.exists(name) else set[str]()
        pending = list(found)
        while pending:
            member = pending.pop()
            for (role, of), membership in self.members.items():
                if of == member and membership.is_member and role not in found:
                    found.add(role)
                    pending.append(role)
        return frozenset(found)

    def is_member(self, name: str, of: str) -> bool:
        """Whether a role has the rights of another, or is it."""
        return of in self.roles_of(name)

    def administers(self, name: str, other: str) -> bool:
        """Whether a role may grant another role and change it: it, or one whose rights it has, has the admin option."""
        if self.is_superuser(name):
            return True
        return any((found := self.members.get((other, each))) is not None and found.is_admin for each in self.roles_of(name))

    # Rights.

    def owner(self, relation: str) -> str | None:
        """The owner of a relation; None if that is the administrator."""
        return self.owners.get(relation.lower())

    @cached_property
    def owners_are_superusers(self) -> bool:
        """Whether no view or trigger acts with fewer rights than a superuser has."""
        return all(self.is_superuser(owner) for owner in self.owners.values())

    def owns(self, role: str, relation: str) -> bool:
        owner = self.owner(relation)
        return self.is_superuser(role) or (owner is not None and owner in self.roles_of(role))

    def granted(self, relation: str, grantee: str) -> frozenset[Action]:
        """The privileges on a relation, or on `DATABASE`, that were granted to a role itself, or to `PUBLIC`."""
        found = self.grants.get((relation.lower(), grantee))
        if found is None:
            return _PUBLIC_AT_FIRST if (relation, grantee) == (DATABASE, PUBLIC) else frozenset()
        return found

    def has(self, role: str, action: Action, relation: str = DATABASE) -> bool:
        """Whether a role has a right on a relation, or on the database."""
        if self.is_superuser(role):
            return True
        roles = self.roles_of(role)
        if not roles or action is Action.SUPERUSER:
            return False
        if relation and self.owners.get(relation.lower()) in roles:
            return True
        if action is Action.OWN:
            return False
        if relation and ((action is Action.SELECT and READ_ALL in roles) or (action in _WRITES and WRITE_ALL in roles)):
            return True
        return any(action in self.granted(relation, grantee) for grantee in (PUBLIC, *roles))

    def refusal(self, role: str | None, rights: Iterable[Right]) -> Refusal | None:
        """The first right that is missing, in the order of the statement's relations; None if the statement may run.

        Args:
            role: runs the statement; None for the administrator.
        """
        for right in sorted(rights, key=_by_name):
            acting = role if not right.definer else self.owner(right.definer)
            if acting is None:
                continue  # The administrator acts: the statement's own, or the owner of the view or of the table of the trigger.
            relation = DATABASE if right.action in (Action.CREATE, Action.SUPERUSER) else right.relation
            if not self.has(acting, right.action, relation):
                return Refusal(acting, right)
        return None

    # Dependencies.

    def depending(self, role: str) -> list[str]:
        """The objects because of which a role cannot be dropped, as PostgreSQL lists them."""
        owned = [f"owner of {relation}" for relation, owner in self.owners.items() if owner == role]
        granted = [
            f"privileges for {relation or 'the database'}" for (relation, to), actions in self.grants.items() if to == role and actions
        ]
        return sorted(owned) + sorted(granted)


NOTHING_STORED = AccessRights()
"""A database without roles."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A right that a role does not have."""

    role: str
    right: Right

    @property
    def error(self) -> SqlError:
        """The error for the client, as PostgreSQL words it."""
        right = self.right
        match right.action:
            case Action.OWN:
                return SqlError("42501", f"must be owner of {right.kind} {right.relation}")
            case Action.CREATE:
                return SqlError("42501", "permission denied for schema public", hint="CREATE is granted on the database.")
            case Action.SUPERUSER:
                return SqlError("42501", f"must be superuser to {right.relation}")
        hint = f'{right.definer} and its triggers act with the rights of their owner, "{self.role}".' if right.definer else None
        return SqlError("42501", f"permission denied for {right.kind} {right.relation}", hint=hint)

    def facts(self) -> dict[str, object]:
        """Facts for the audit log."""
        return {"acting_role": self.role, "right": self.right.action.name, "relation": self.right.relation}


def missing_role(name: str) -> SqlError:
    hint = "This is how the administrator is shown, who has every right and is a member of no role." if name == ADMINISTRATOR else None
    return SqlError("42704", f'role "{name}" does not exist', hint=hint)


def _by_name(right: Right) -> tuple[str, str, str]:
    return right.definer, right.relation.lower(), right.action.name


ALL_ON_TABLE, ALL_ON_DATABASE = frozenset(TABLE_ACTIONS), frozenset(DATABASE_ACTIONS)
