"""The rows of the catalogue's tables about roles and rights. Pure.

The administrator of a database is not stored in it. It has the name ``triplicate`` here, and owns what no role owns.
"""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.sql.catalogue.array_functions import array_text
from triplicate.sql.catalogue.object_ids import object_ids
from triplicate.sql.catalogue.system_tables import system_row
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
from triplicate.sql.core.interface import Row, Value
from triplicate.sql.core.rights import Action, letters_of

ADMINISTRATOR_OID = 10
_PREDEFINED_OIDS = {READ_ALL: 6181, WRITE_ALL: 6182}
_HIDDEN = "********"
_POSTGRESQL_EPOCH_US = 946_684_800_000_000

PRIVILEGE_TABLES = {
    "information_schema.table_privileges": "grantor name, grantee name, table_catalog name, table_schema name, table_name name,"
    " privilege_type text, is_grantable text, with_hierarchy text",
    "information_schema.role_table_grants": "grantor name, grantee name, table_catalog name, table_schema name, table_name name,"
    " privilege_type text, is_grantable text, with_hierarchy text",
}
"""Maps the name of each of these views to its columns, each with its type."""


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
            system_row("pg_auth_members", roleid=self.oids[role], member=self.oids[member], grantor=ADMINISTRATOR_OID,
                       admin_option=membership.is_admin)
            for (role, member), membership in sorted(self.access.members.items())
            if membership.is_member and role in self.oids and member in self.oids
        ]  # fmt: skip
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

    def of_session(self, table: str, session_user: Value, logged_in: Value) -> list[Row]:
        """The row of pg_roles or pg_user for the name of an administrator's session, which is no role of the database.

        Args:
            session_user, logged_in: of the session, see `SessionName`.
        """
        name = str(session_user)
        if logged_in != "" or not name or name in self.oids:
            return []
        role = StoredRole(name, None, True, True, True)
        return [self._role(role) if table == "pg_roles" else self._user(role)]

    def oid(self, role: str) -> int:
        """The oid of a role, or of the name of an administrator's session."""
        return self.oids[role] if role in self.oids else object_ids([role])[role]

    def _role(self, role: StoredRole) -> Row:
        return system_row(
            "pg_roles", oid=self.oid(role.name), rolname=role.name, rolsuper=role.is_superuser,
            rolcreaterole=role.can_create_roles or role.is_superuser, rolcanlogin=role.can_login, rolconnlimit=role.connection_limit,
            rolpassword=_HIDDEN, rolvaliduntil=_shown(role.valid_until_us), rolbypassrls=role.is_superuser,
        )  # fmt: skip

    def _user(self, role: StoredRole) -> Row:
        return system_row(
            "pg_user", usename=role.name, usesysid=self.oid(role.name), usesuper=role.is_superuser, usebypassrls=role.is_superuser,
            passwd=_HIDDEN, valuntil=_shown(role.valid_until_us),
        )  # fmt: skip

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
