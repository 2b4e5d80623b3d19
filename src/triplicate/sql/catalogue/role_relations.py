"""The rows of the catalogue's tables about roles and rights. Pure.

The administrator of a database is not stored in it. It has the name ``triplicate`` here, and owns what no role owns.
"""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.sql.catalogue.array_functions import array_text
from triplicate.sql.catalogue.object_ids import object_ids
from triplicate.sql.core.access_rights import (
    ADMINISTRATOR,
    ALL_ON_TABLE,
    DATABASE,
    PREDEFINED,
    PUBLIC,
    READ_ALL,
    WRITE_ALL,
    AccessRights,
    StoredRole,
)
from triplicate.sql.core.datetime_text import datetime_of_microseconds
from triplicate.sql.core.declared_types import Kind
from triplicate.sql.core.interface import Row
from triplicate.sql.core.rights import Action, letters_of

ADMINISTRATOR_OID = 10
_PREDEFINED_OIDS = {READ_ALL: 6181, WRITE_ALL: 6182}
_HIDDEN = "********"
_POSTGRESQL_EPOCH_US = 946_684_800_000_000

ROLE_TABLES = {
    "pg_roles": "oid oid, rolname name, rolsuper boolean, rolinherit boolean, rolcreaterole boolean, rolcreatedb boolean,"
    " rolcanlogin boolean, rolreplication boolean, rolconnlimit integer, rolpassword text, rolvaliduntil timestamptz,"
    " rolbypassrls boolean, rolconfig text[]",
    "pg_user": "usename name, usesysid oid, usecreatedb boolean, usesuper boolean, userepl boolean, usebypassrls boolean, passwd text,"
    " valuntil timestamptz, useconfig text[]",
    "pg_auth_members": "roleid oid, member oid, grantor oid, admin_option boolean",
    "pg_policy": "oid oid, polname name, polrelid oid, polcmd char1, polpermissive boolean, polroles text[], polqual text,"
    " polwithcheck text",
    "information_schema.table_privileges": "grantor name, grantee name, table_catalog name, table_schema name, table_name name,"
    " privilege_type text, is_grantable text, with_hierarchy text",
    "information_schema.role_table_grants": "grantor name, grantee name, table_catalog name, table_schema name, table_name name,"
    " privilege_type text, is_grantable text, with_hierarchy text",
}
"""Maps the name of each of these tables to its columns, each with its type."""


class RoleCatalogue:
    """The roles of one state of a database, with their oids.

    Args:
        database: its name.
    """

    def __init__(self, access: AccessRights, database: str) -> None:
        self.access = access
        self._database = database
        self.oids = {ADMINISTRATOR: ADMINISTRATOR_OID, **_PREDEFINED_OIDS, **object_ids([*access.roles])}
        """By the name of the role."""
        self.names = {oid: name for name, oid in self.oids.items()}

    def owner(self, relation: str) -> str:
        return self.access.owner(relation) or ADMINISTRATOR

    def owner_oid(self, relation: str) -> int:
        return self.oids.get(self.owner(relation), ADMINISTRATOR_OID)

    def acl(self, relation: str) -> str | None:
        """The privileges on a relation as an array of PostgreSQL's ``aclitem``; None for those that it has at first."""
        granted = self._granted(relation)
        if not granted:
            return None
        owner = self.owner(relation)
        items = [f"{owner}={letters_of(ALL_ON_TABLE)}/{owner}"]
        return array_text([*items, *[f"{grantee}={letters_of(actions)}/{owner}" for grantee, actions in granted]])

    def database_acl(self) -> str | None:
        """As `acl`, for the database."""
        granted = self._granted(DATABASE)
        if not granted:
            return None
        return array_text([f"{grantee}={letters_of(actions)}/{ADMINISTRATOR}" for grantee, actions in granted])

    def _granted(self, relation: str) -> list[tuple[str, frozenset[Action]]]:
        return sorted((to, actions) for (of, to), actions in self.access.grants.items() if of == relation.lower() and actions)

    def rows(self, relations: Sequence[str]) -> dict[str, list[Row]]:
        """The rows of the tables about roles, by table.

        Args:
            relations: the names of the tables and views.
        """
        roles = [StoredRole(ADMINISTRATOR, None, True, True, True), *[StoredRole(name) for name in PREDEFINED], *self._stored()]
        members: list[Row] = [
            (self.oids[role], self.oids[member], ADMINISTRATOR_OID, membership.is_admin)
            for (role, member), membership in sorted(self.access.members.items())
            if membership.is_member and role in self.oids and member in self.oids
        ]
        grants = [row for relation in relations for row in self._grants(relation)]
        return {
            "pg_roles": [self._role(role) for role in roles],
            "pg_user": [self._user(role) for role in roles if role.can_login],
            "pg_auth_members": members,
            "information_schema.table_privileges": grants,
            "information_schema.role_table_grants": [row for row in grants if row[1] != "PUBLIC"],
        }

    def _stored(self) -> list[StoredRole]:
        return [role for name, role in sorted(self.access.roles.items()) if name != ADMINISTRATOR]

    def _role(self, role: StoredRole) -> Row:
        return (
            self.oids[role.name], role.name, role.is_superuser, 1, role.can_create_roles or role.is_superuser, 0, role.can_login, 0,
            role.connection_limit, _HIDDEN, _shown(role.valid_until_us), role.is_superuser, None,
        )  # fmt: skip

    def _user(self, role: StoredRole) -> Row:
        valid_until = _shown(role.valid_until_us)
        return (role.name, self.oids[role.name], 0, role.is_superuser, 0, role.is_superuser, _HIDDEN, valid_until, None)

    def _grants(self, relation: str) -> list[Row]:
        owner = self.owner(relation)
        granted = [(owner, ALL_ON_TABLE), *self._granted(relation)]
        return [
            (owner, grantee if grantee != PUBLIC else "PUBLIC", self._database, "public", relation, action.name,
             "YES" if grantee == owner else "NO", "YES" if action is Action.SELECT else "NO")
            for grantee, actions in granted
            for action in sorted(actions, key=lambda one: one.name)
        ]  # fmt: skip


def _shown(valid_until_us: int | None) -> str | None:
    if valid_until_us is None:
        return None
    return datetime_of_microseconds(valid_until_us - _POSTGRESQL_EPOCH_US, Kind.TIMESTAMPTZ)
