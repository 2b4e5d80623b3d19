"""The grammar of roles and rights."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.access_rights import ALL_ON_TABLE, PUBLIC
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.core.rights import Action
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
from triplicate.sql.pg.syntax.role_statement import (
    CURRENT_USER,
    RoleStatement,
    SetRole,
    is_role_statement,
    parse_role_statement,
    parse_set_role,
)


def parsed(sql: str) -> RoleStatement:
    statement = statement_of(sql)
    assert is_role_statement(statement)
    return parse_role_statement(statement)


SELECT = frozenset((Action.SELECT,))
COMMANDS: list[tuple[str, RoleCommand, str]] = [
    ("CREATE ROLE a", CreateRole("a", {"can_login": False}), "CREATE ROLE"),
    (
        "create user A with superuser nocreaterole",
        CreateRole("a", {"can_login": True, "is_superuser": True, "can_create_roles": False}),
        "CREATE ROLE",
    ),
    (
        'CREATE ROLE "A" NOLOGIN CONNECTION LIMIT 5 IN ROLE b, c ROLE d',
        CreateRole("A", {"can_login": False, "connection_limit": 5}, ("b", "c"), ("d",)),
        "CREATE ROLE",
    ),
    (
        "CREATE ROLE a VALID UNTIL '2030-01-01 00:00+00'",
        CreateRole("a", {"can_login": False, "valid_until_us": 1893456000000000}),
        "CREATE ROLE",
    ),
    (
        "ALTER ROLE a VALID UNTIL 'infinity' CONNECTION LIMIT -1",
        AlterRole("a", {"valid_until_us": None, "connection_limit": -1}),
        "ALTER ROLE",
    ),
    ("ALTER USER CURRENT_USER NOLOGIN", AlterRole(CURRENT_USER, {"can_login": False}), "ALTER ROLE"),
    ("ALTER ROLE a RENAME TO b", RenameRole("a", "b"), "ALTER ROLE"),
    ("ALTER GROUP a ADD USER b, c", ChangeMembers(True, ("a",), ("b", "c")), "ALTER ROLE"),
    ("DROP ROLE IF EXISTS a, b", DropRoles(("a", "b"), True), "DROP ROLE"),
    ("GRANT SELECT ON t TO a", ChangeGrants(True, SELECT, ("a",), ("t",)), "GRANT"),
    (
        "GRANT SELECT, INSERT ON TABLE public.t, u TO a, PUBLIC",
        ChangeGrants(True, frozenset((Action.SELECT, Action.INSERT)), ("a", PUBLIC), ("t", "u")),
        "GRANT",
    ),
    ("REVOKE ALL PRIVILEGES ON ALL TABLES IN SCHEMA public FROM a CASCADE", ChangeGrants(False, ALL_ON_TABLE, ("a",), None), "REVOKE"),
    ("GRANT CONNECT ON DATABASE shop TO a", ChangeGrants(True, frozenset((Action.CONNECT,)), ("a",), None, True), "GRANT"),
    ("GRANT USAGE, CREATE ON SCHEMA public TO a", ChangeGrants(True, frozenset((Action.CREATE,)), ("a",), None, True), "GRANT"),
    ("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO a", ChangeGrants(True, frozenset(), ("a",), ()), "GRANT"),
    ("GRANT b, c TO a WITH ADMIN OPTION", ChangeMembers(True, ("b", "c"), ("a",), True), "GRANT ROLE"),
    ("REVOKE ADMIN OPTION FOR b FROM a", ChangeMembers(False, ("b",), ("a",), True), "REVOKE ROLE"),
    ("ALTER TABLE ONLY public.t OWNER TO a", ChangeOwner("t", "table", "a"), "ALTER TABLE"),
    ("REASSIGN OWNED BY a, b TO c;", ReassignOwned(("a", "b"), "c"), "REASSIGN OWNED"),
]


@pytest.mark.parametrize(("sql", "command", "tag"), COMMANDS, ids=[sql for sql, _, _ in COMMANDS])
def test_statements_of_roles_and_rights_are_parsed(sql: str, command: RoleCommand, tag: str) -> None:
    found = parsed(sql)
    assert (found.command, found.tag) == (command, tag)


def test_a_password_is_in_no_repr() -> None:
    found = parsed("CREATE ROLE a LOGIN ENCRYPTED PASSWORD 'hedge''hog'")
    assert found.password is not None
    assert found.password.text == "hedge'hog"
    assert "hedge" not in repr(found)
    cleared = parsed("ALTER ROLE a PASSWORD NULL").password
    assert cleared is not None
    assert cleared.text is None


REFUSED = [
    ("CREATE ROLE a PASSWORD hedgehog", "42601"), ("CREATE ROLE a PASSWORD 'hedgehog' 'hedgehog'", "42601"),
    ("CREATE ROLE a NONSENSE 'hedgehog'", "42601"), ("CREATE ROLE public", "42939"), ("ALTER ROLE ALL NOLOGIN", "0A000"),
    ("ALTER ROLE a SET search_path = x", "0A000"), ("CREATE ROLE a NOINHERIT", "0A000"), ("CREATE ROLE a REPLICATION", "0A000"),
    ("GRANT SELECT (a) ON t TO b", "0A000"), ("GRANT SELECT ON t TO b WITH GRANT OPTION", "0A000"),
    ("REVOKE GRANT OPTION FOR SELECT ON t FROM b", "0A000"), ("GRANT EXECUTE ON FUNCTION f TO b", "0A000"),
    ("GRANT FLY ON t TO b", "42601"),
    ("GRANT SELECT ON other.t TO b", "42P01"), ("REVOKE SELECT ON t, other.t FROM b", "42P01"), ("ALTER TABLE other.t OWNER TO b", "42P01"),
    ("GRANT CONNECT ON t TO b", "0LP01"), ("GRANT SELECT ON DATABASE d TO b", "0LP01"), ("GRANT USAGE ON SCHEMA other TO b", "3F000"),
    ("GRANT a TO PUBLIC", "42704"), ("GRANT SELECT ON t", "42601"), ("DROP OWNED BY a", "0A000"),
    ("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO a", "0A000"), ("CREATE ROLE a CONNECTION LIMIT -2", "22023"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "sqlstate"), REFUSED, ids=[sql for sql, _ in REFUSED])
def test_what_is_not_supported_is_refused_by_name_without_a_password(sql: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as raised:
        parsed(sql)
    assert raised.value.sqlstate == sqlstate
    assert "hedgehog" not in str(raised.value)


def test_other_statements_are_left_alone() -> None:
    for sql in ("CREATE TABLE role (a int)", "ALTER TABLE t ADD COLUMN owner text", "DROP TABLE users", "SELECT 1"):
        assert not is_role_statement(statement_of(sql))
    for sql in (
        "SET search_path = public",
        "SET LOCAL TimeZone = 'UTC'",
        "RESET ALL",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    ):
        assert parse_set_role(statement_of(sql)) is None


def test_roles_of_a_session_are_set_and_reset() -> None:
    expected = {
        "SET ROLE a": SetRole("a", False),
        "SET SESSION ROLE 'A'": SetRole("A", False),
        "SET LOCAL ROLE a": SetRole("a", False, True),
        "SET ROLE NONE": SetRole(None, False),
        "SET ROLE 'none'": SetRole(None, False),
        "SET role TO a": SetRole("a", False),
        "RESET ROLE": SetRole(None, False, tag="RESET"),
        "SET SESSION AUTHORIZATION a": SetRole("a", True),
        "SET LOCAL SESSION AUTHORIZATION a": SetRole("a", True, True),
        "SET SESSION SESSION AUTHORIZATION DEFAULT": SetRole(None, True),
        "RESET SESSION AUTHORIZATION": SetRole(None, True, tag="RESET"),
    }
    for sql, found in expected.items():
        assert parse_set_role(statement_of(sql)) == found, sql
