"""The internal tables with the roles and rights of a database.

They are created by the first change of roles or rights, and are changed by settings of the log: `role:<name>`,
`role_member:<role and member>`, `grant:<relation and grantee>` and `owner:<relation>`. The leader and its followers store a setting by the
same function. All functions block.
"""

from __future__ import annotations

import json
from typing import Any

import apsw

from triplicate.sql.core.access_rights import NOTHING_STORED, AccessRights, Membership, StoredRole
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.rights import actions_of

ROLE, MEMBER, GRANT, OWNER = "role", "role_member", "grant", "owner"
KINDS = (ROLE, MEMBER, GRANT, OWNER)
"""The kinds of settings, which their names begin with."""
_TABLES = """
create table if not exists triplicate_roles(
    name text primary key, verifier text, can_login integer not null, is_superuser integer not null, can_create_roles integer not null,
    valid_until_us integer, connection_limit integer not null
) without rowid;
create table if not exists triplicate_role_members(
    role text not null, member text not null, is_member integer not null, is_admin integer not null, primary key(role, member)
) without rowid;
create table if not exists triplicate_grants(
    relation text not null, grantee text not null, privileges text not null, primary key(relation, grantee)
) without rowid;
create table if not exists triplicate_owners(relation text primary key, role text not null) without rowid;
"""
_COLUMNS = {
    ROLE: ("triplicate_roles", ("name",)),
    MEMBER: ("triplicate_role_members", ("role", "member")),
    GRANT: ("triplicate_grants", ("relation", "grantee")),
    OWNER: ("triplicate_owners", ("relation",)),
}


def role_setting(role: StoredRole) -> tuple[str, Value]:
    """The setting that stores a role: name and value."""
    values = [role.verifier, int(role.can_login), int(role.is_superuser), int(role.can_create_roles)]
    return f"{ROLE}:{role.name}", json.dumps([*values, role.valid_until_us, role.connection_limit], separators=(",", ":"))


def pair_setting(kind: str, first: str, second: str, value: Value) -> tuple[str, Value]:
    """The setting of a membership or of grants. `value` None removes it."""
    return f"{kind}:{json.dumps([first, second], separators=(',', ':'))}", value


def member_setting(role: str, member: str, membership: Membership | None) -> tuple[str, Value]:
    value = None if membership is None else json.dumps([int(membership.is_member), int(membership.is_admin)], separators=(",", ":"))
    return pair_setting(MEMBER, role, member, value)


def has_access_tables(connection: apsw.Connection) -> bool:
    """Whether roles or rights have been stored in the database."""
    return bool(connection.execute("select 1 from main.sqlite_schema where type = 'table' and name = 'triplicate_roles'").fetchall())


def store_access_setting(connection: apsw.Connection, kind: str, subject: str, value: Value) -> None:
    """Store one setting of these kinds. None removes what is stored.

    Raises:
        ValueError: the log has a value that this release does not know.
    """
    if not has_access_tables(connection):
        connection.execute(_TABLES)
    table, columns = _COLUMNS[kind]
    key = json.loads(subject) if len(columns) > 1 else [subject]
    if len(key) != len(columns):
        raise ValueError(f"the setting {kind} has {len(key)} names")
    if value is None:
        connection.execute(f"delete from {table} where {' and '.join(f'{column} = ?' for column in columns)}", tuple(key))
        return
    values: list[Any] = json.loads(str(value)) if kind in (ROLE, MEMBER) else [value]
    row = (*key, *values)
    connection.execute(f"insert or replace into {table} values({', '.join('?' * len(row))})", row)


def access_rows(connection: apsw.Connection) -> tuple[tuple[Any, ...], ...]:
    """All that is stored of roles and rights, to be compared with what is stored later."""
    if not has_access_tables(connection):
        return ()
    return tuple((table, *row) for table, _ in _COLUMNS.values() for row in connection.execute(f"select * from {table}"))


def load_access_rights(connection: apsw.Connection) -> AccessRights:
    """The roles and rights that the connection sees."""
    if not has_access_tables(connection):
        return NOTHING_STORED
    roles = [
        StoredRole(str(name), verifier, bool(login), bool(superuser), bool(creates), until, limit)
        for name, verifier, login, superuser, creates, until, limit in connection.execute("select * from triplicate_roles")
    ]
    members = {
        (str(role), str(member)): Membership(bool(is_member), bool(is_admin))
        for role, member, is_member, is_admin in connection.execute("select * from triplicate_role_members")
    }
    grants = {
        (str(relation), str(grantee)): actions_of(str(letters))
        for relation, grantee, letters in connection.execute("select * from triplicate_grants")
    }
    owners = {str(relation): str(role) for relation, role in connection.execute("select * from triplicate_owners")}
    return AccessRights(roles, members, grants, owners)
