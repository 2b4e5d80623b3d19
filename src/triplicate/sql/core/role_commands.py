"""The commands that change roles and rights, as the engine runs them. Passwords have become verifiers before. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from triplicate.sql.core.rights import Action

Attribute = str | int | bool | None


@dataclass(frozen=True, slots=True)
class CreateRole:
    name: str
    attributes: Mapping[str, Attribute] = field(repr=False)
    """Fields of `StoredRole`. They may include the verifier."""
    member_of: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterRole:
    name: str
    attributes: Mapping[str, Attribute] = field(repr=False)


@dataclass(frozen=True, slots=True)
class RenameRole:
    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class DropRoles:
    names: tuple[str, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True)
class ChangeGrants:
    """GRANT or REVOKE of privileges on relations, or on the database."""

    grants: bool
    actions: frozenset[Action]
    grantees: tuple[str, ...]
    relations: tuple[str, ...] | None = None
    """None for all tables and views."""
    on_database: bool = False


@dataclass(frozen=True, slots=True)
class ChangeMembers:
    """GRANT or REVOKE of roles."""

    grants: bool
    roles: tuple[str, ...]
    members: tuple[str, ...]
    admin: bool = False
    """WITH ADMIN OPTION; with REVOKE, ADMIN OPTION FOR."""


@dataclass(frozen=True, slots=True)
class ChangeOwner:
    """ALTER TABLE or VIEW … OWNER TO."""

    relation: str
    kind: str
    owner: str


@dataclass(frozen=True, slots=True)
class ReassignOwned:
    owners: tuple[str, ...]
    new_owner: str


RoleCommand = CreateRole | AlterRole | RenameRole | DropRoles | ChangeGrants | ChangeMembers | ChangeOwner | ReassignOwned


def described(command: RoleCommand) -> dict[str, object]:
    """The facts of a command for the audit log: names and privileges, and never a verifier."""
    match command:
        case CreateRole(name, attributes) | AlterRole(name, attributes):
            return {"changed_role": name, "attributes": ",".join(sorted(attributes))}
        case RenameRole(name, new_name):
            return {"changed_role": name, "new_name": new_name}
        case DropRoles(names):
            return {"changed_role": ",".join(names)}
        case ChangeGrants():
            to = ",".join(grantee or "public" for grantee in command.grantees)
            on = "database" if command.on_database else "all tables" if command.relations is None else ",".join(command.relations)
            return {"privileges": ",".join(sorted(action.name for action in command.actions)), "on": on, "grantees": to}
        case ChangeMembers():
            return {"changed_role": ",".join(command.roles), "members": ",".join(command.members)}
        case ChangeOwner():
            return {"relation": command.relation, "owner": command.owner}
        case ReassignOwned():
            return {"changed_role": ",".join(command.owners), "owner": command.new_owner}
