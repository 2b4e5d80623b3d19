"""Roles and rights in a database: each way to a table is checked, on the leader and on followers.

The cluster has no authentication, so a connection becomes a role by SET SESSION AUTHORIZATION, as the administrator may.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.clients.stand import Db

SECRET = "hedgehog-17"
DENIED = "42501"


@pytest.fixture(scope="module")
def db(stand: Any) -> Db:
    """A database with roles: ``reader`` may read ``open_t``, ``writer`` may write it as well, and ``nobody`` may do nothing."""
    found: Db = stand.create("roles")
    with found.connect() as admin:
        for statement in (
            "CREATE ROLE reader LOGIN", "CREATE ROLE writer LOGIN", "CREATE USER nobody", "CREATE ROLE maker LOGIN",
            "CREATE TABLE open_t (id INTEGER PRIMARY KEY, v TEXT)", "CREATE TABLE closed_t (id INTEGER PRIMARY KEY, v TEXT)",
            "INSERT INTO open_t VALUES (1, 'a'), (2, 'b')", "INSERT INTO closed_t VALUES (1, 'secret')",
            "GRANT SELECT ON open_t TO reader", "GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE open_t TO writer",
            "GRANT CREATE ON DATABASE roles TO maker",
        ):  # fmt: skip
            admin.execute(statement.encode())
    return found


def as_role(db: Db, role: str, **options: Any) -> psycopg.Connection[Any]:
    """A connection with the rights of a role."""
    connection = db.connect(**options)
    connection.execute(sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(role)))
    if not connection.autocommit:
        connection.commit()
    return connection


def state(run: Callable[[], object]) -> str | None:
    """The SQLSTATE with which a call fails, None if it does not fail."""
    try:
        run()
    except psycopg.Error as error:
        return error.sqlstate
    return None


STATEMENTS = [
    ("SELECT * FROM open_t", {"reader", "writer"}),
    ("SELECT count(*) FROM open_t", {"reader", "writer"}),
    ("SELECT 1 FROM open_t", {"reader", "writer"}),
    ("SELECT v FROM open_t WHERE id = 1", {"reader", "writer"}),
    ("WITH x AS (SELECT * FROM open_t) SELECT * FROM x", {"reader", "writer"}),
    ("SELECT (SELECT max(v) FROM open_t)", {"reader", "writer"}),
    ("EXPLAIN SELECT * FROM open_t", {"reader", "writer"}),
    ("SELECT * FROM closed_t", set()),
    ("SELECT open_t.id FROM open_t, closed_t", set()),
    ("WITH open_t AS (SELECT * FROM closed_t) SELECT * FROM open_t", set()),
    ("SELECT id FROM open_t UNION SELECT id FROM closed_t", set()),
    ("EXPLAIN SELECT * FROM closed_t", set()),
    ("INSERT INTO open_t VALUES (9, 'z') ON CONFLICT (id) DO UPDATE SET v = excluded.v", {"writer"}),
    ("INSERT INTO open_t SELECT id + 100, v FROM closed_t", set()),
    ("UPDATE open_t SET v = 'a' WHERE id = 1", {"writer"}),
    ("UPDATE open_t SET v = 'a' WHERE id = 1 RETURNING v", {"writer"}),
    ("DELETE FROM open_t WHERE id = 77", {"writer"}),
    ("TRUNCATE open_t", set()),
    ("UPDATE closed_t SET v = 'x'", set()),
    ("DELETE FROM closed_t", set()),
    ("CREATE TABLE made (a INTEGER)", {"maker"}),
    ("CREATE TABLE copied AS SELECT * FROM closed_t", set()),
    ("CREATE INDEX i ON open_t (v)", set()),
    ("ALTER TABLE open_t ADD COLUMN extra TEXT", set()),
    ("ALTER TABLE open_t RENAME TO other", set()),
    ("DROP TABLE open_t", set()),
    ("DROP TABLE IF EXISTS open_t", set()),
    ("CREATE TRIGGER tr AFTER INSERT ON open_t BEGIN SELECT 1; END", set()),
    ("CREATE VIRTUAL TABLE words USING fts5(v, content='closed_t')", set()),
    ("SELECT * FROM triplicate_roles", set()),
    ("SELECT * FROM triplicate_requests", set()),
    ("CREATE ROLE another", set()),
    ("ALTER ROLE reader SUPERUSER", set()),
    ("DROP ROLE reader", set()),
    ("GRANT SELECT ON closed_t TO reader", set()),
    ("GRANT writer TO reader", set()),
    ("SET ROLE maker", {"maker"}),
    ("PRAGMA user_version = 7", set()),
    ("ANALYZE", set()),
    ("SELECT name FROM sqlite_master", {"reader", "writer", "nobody", "maker"}),
    ("SELECT relname FROM pg_class", {"reader", "writer", "nobody", "maker"}),
]  # fmt: skip


@pytest.mark.parametrize("role", ["reader", "writer", "nobody", "maker"])
@pytest.mark.parametrize(("statement", "allowed"), STATEMENTS, ids=[statement for statement, _ in STATEMENTS])
def test_a_role_runs_what_it_has_the_rights_for(db: Db, statement: str, allowed: set[str], role: str) -> None:
    with as_role(db, role, autocommit=False) as connection:
        found = state(lambda: connection.execute(statement.encode()))
        connection.rollback()
        assert found == (None if role in allowed else DENIED)


def _fetch(db: Db, role: str, query: str) -> list[Any]:
    with as_role(db, role) as connection:
        return connection.execute(query.encode()).fetchall()


def _copy_out(connection: psycopg.Connection[Any], table: str) -> None:
    with connection.cursor().copy(f"COPY {table} TO STDOUT".encode()) as copy:
        list(copy)


def _copy_query_out(connection: psycopg.Connection[Any], table: str) -> None:
    with connection.cursor().copy(f"COPY (SELECT * FROM {table}) TO STDOUT".encode()) as copy:
        list(copy)


def _copy_in(connection: psycopg.Connection[Any], table: str) -> None:
    with connection.cursor().copy(f"COPY {table} (v) FROM STDIN".encode()) as copy:
        copy.write_row(("c",))


def _many(connection: psycopg.Connection[Any], statement: str, rows: list[Any]) -> None:
    with connection.transaction():
        connection.cursor().executemany(statement.encode(), rows)


def _server_cursor(connection: psycopg.Connection[Any], table: str) -> None:
    with connection.transaction():
        connection.execute(f"SELECT * FROM {table}".encode(), prepare=True).fetchall()
        connection.execute(f"SELECT * FROM {table}".encode(), prepare=True).fetchall()


def _pipeline(connection: psycopg.Connection[Any], table: str) -> None:
    with connection.pipeline():
        first = connection.execute("SELECT 1")
        second = connection.execute(f"SELECT * FROM {table} WHERE id = %s".encode(), (1,))
        first.fetchall()
        second.fetchall()


Path = Callable[[psycopg.Connection[Any], str], object]
READS: dict[str, Path] = {
    "simple query": lambda c, t: psycopg.ClientCursor(c).execute(f"SELECT * FROM {t}"),
    "shape of a simple query": lambda c, t: psycopg.ClientCursor(c).execute(f"SELECT v FROM {t} WHERE id = 1"),
    "extended query": lambda c, t: c.execute(f"SELECT * FROM {t} WHERE id = %s".encode(), (1,)),
    "prepared": lambda c, t: [c.execute(f"SELECT v FROM {t} WHERE id = %s".encode(), (1,), prepare=True) for _ in range(3)],
    "binary": lambda c, t: c.execute(f"SELECT * FROM {t} WHERE id = %s".encode(), (1,), binary=True),
    "several statements": lambda c, t: psycopg.ClientCursor(c).execute(f"SELECT 1; SELECT * FROM {t}"),
    "transaction": lambda c, t: [c.execute("BEGIN"), c.execute(f"SELECT * FROM {t}".encode())],
    "transaction with the writer": lambda c, t: [c.execute("BEGIN IMMEDIATE"), c.execute(f"SELECT * FROM {t}".encode())],
    "cursor": _server_cursor,
    "pipeline": _pipeline,
    "copy of a table": _copy_out,
    "copy of a query": _copy_query_out,
    "explain": lambda c, t: c.execute(f"EXPLAIN SELECT * FROM {t}".encode()),
    "long read": lambda c, t: c.execute(f"SELECT a.id FROM {t} a, {t} b ORDER BY a.v || b.v".encode()),
    "full scan by a subquery": lambda c, t: c.execute(f"SELECT 1 WHERE EXISTS (SELECT 1 FROM {t})".encode()),
    "rowid": lambda c, t: c.execute(f"SELECT rowid FROM {t}".encode()),
}
WRITES: dict[str, Path] = {
    "simple query": lambda c, t: psycopg.ClientCursor(c).execute(f"INSERT INTO {t} (v) VALUES ('c')"),
    "extended query": lambda c, t: c.execute(f"INSERT INTO {t} (v) VALUES (%s)".encode(), ("c",)),
    "prepared": lambda c, t: [c.execute(f"INSERT INTO {t} (v) VALUES (%s)".encode(), ("c",), prepare=True) for _ in range(3)],
    "several statements": lambda c, t: psycopg.ClientCursor(c).execute(f"SELECT 1; INSERT INTO {t} (v) VALUES ('c')"),
    "transaction": lambda c, t: [c.execute("BEGIN"), c.execute(f"INSERT INTO {t} (v) VALUES ('c')".encode())],
    "executemany": lambda c, t: _many(c, f"INSERT INTO {t} (v) VALUES (%s)", [(str(n),) for n in range(3)]),
    "executemany in bulk": lambda c, t: _many(c, f"INSERT INTO {t} (v) VALUES (%s)", [(str(n),) for n in range(100)]),
    "copy": _copy_in,
    "update": lambda c, t: c.execute(f"UPDATE {t} SET v = v WHERE id = %s".encode(), (1,)),
    "delete": lambda c, t: c.execute(f"DELETE FROM {t} WHERE id = %s".encode(), (999,)),
    "returning": lambda c, t: c.execute(f"INSERT INTO {t} (v) VALUES ('c') RETURNING id".encode()).fetchall(),
    "common table expression": lambda c, t: c.execute(f"WITH x AS (SELECT 'd' AS v) INSERT INTO {t} (v) SELECT v FROM x".encode()),
}


@pytest.mark.parametrize("path", READS)
def test_every_way_to_read_is_checked(db: Db, path: str) -> None:
    for role, table, expected in (("reader", "open_t", None), ("reader", "closed_t", DENIED), ("nobody", "open_t", DENIED)):
        with as_role(db, role) as connection:
            assert state(lambda c=connection, t=table: READS[path](c, t)) == expected, (role, table)  # type: ignore[misc]


@pytest.mark.parametrize("path", WRITES)
def test_every_way_to_write_is_checked(db: Db, path: str) -> None:
    with db.connect() as admin:
        before = admin.execute("SELECT count(*) FROM closed_t").fetchone()
        for role, table, expected in (("writer", "open_t", None), ("writer", "closed_t", DENIED), ("reader", "open_t", DENIED)):
            with as_role(db, role) as connection:
                assert state(lambda c=connection, t=table: WRITES[path](c, t)) == expected, (role, table)  # type: ignore[misc]
        assert admin.execute("SELECT count(*) FROM closed_t").fetchone() == before


def test_a_statement_that_was_prepared_before_a_revoke_is_refused_after_it(db: Db) -> None:
    with db.connect() as admin, as_role(db, "nobody") as reader, as_role(db, "nobody", autocommit=False) as transaction:
        admin.execute("GRANT SELECT, INSERT ON open_t TO nobody")
        query = b"SELECT v FROM open_t WHERE id = %s"
        for _ in range(3):
            assert reader.execute(query, (1,), prepare=True).fetchall()
            assert transaction.execute(query, (1,), prepare=True).fetchall()
        reader.execute("INSERT INTO open_t (v) VALUES (%s)", ("q",), prepare=True)
        admin.execute("REVOKE ALL ON open_t FROM nobody")
        assert state(lambda: reader.execute(query, (1,), prepare=True)) == DENIED
        assert state(lambda: transaction.execute(query, (1,), prepare=True)) == DENIED
        assert state(lambda: reader.execute("INSERT INTO open_t (v) VALUES (%s)", ("q",), prepare=True)) == DENIED
        assert state(lambda: psycopg.ClientCursor(reader).execute("SELECT v FROM open_t WHERE id = 2")) == DENIED


def test_a_result_that_is_open_goes_on_after_a_revoke(db: Db) -> None:
    with db.connect() as admin, as_role(db, "nobody") as reader:
        admin.execute("GRANT SELECT ON open_t TO nobody")
        with reader.cursor() as cursor:
            rows = cursor.stream("SELECT a.id FROM open_t a, open_t b, open_t c LIMIT 5000")
            next(rows)
            admin.execute("REVOKE ALL ON open_t FROM nobody")
            assert sum(1 for _ in rows) > 0


def test_followers_have_the_roles_and_follow_a_revoke(db: Db) -> None:
    with db.connect() as admin:
        admin.execute("GRANT SELECT ON open_t TO nobody")
        for node in db.followers():
            db.wait_for_position(node, admin)  # A copy that is behind may show a grant of an earlier test, which was revoked since.
            db.wait_for_value(node, "SELECT count(*) FROM triplicate_grants WHERE grantee = 'nobody'", 1)
            with db.connect_to(node) as follower:
                follower.execute("SET SESSION AUTHORIZATION nobody")
                assert follower.execute("SELECT v FROM open_t WHERE id = %s", (1,), prepare=True).fetchall()
                assert state(lambda c=follower: c.execute("SELECT * FROM closed_t")) == DENIED  # type: ignore[misc]
        admin.execute("REVOKE SELECT ON open_t FROM nobody")
        for node in db.followers():
            db.wait_for_position(node, admin)
            db.wait_for_value(node, "SELECT count(*) FROM triplicate_grants WHERE grantee = 'nobody'", 0)
            with db.connect_to(node) as follower:
                follower.execute("SET SESSION AUTHORIZATION nobody")
                assert state(lambda c=follower: c.execute("SELECT v FROM open_t WHERE id = %s", (1,), prepare=True)) == DENIED  # type: ignore[misc]


def test_a_view_reads_with_the_rights_of_its_owner(db: Db) -> None:
    with db.connect() as admin:
        admin.execute("CREATE VIEW window_v AS WITH open_t AS (SELECT v FROM closed_t) SELECT v FROM open_t")
        admin.execute("GRANT SELECT ON window_v TO reader")
        assert _fetch(db, "reader", "SELECT v FROM window_v") == [("secret",)]
        with as_role(db, "nobody") as nobody:
            assert state(lambda: nobody.execute("SELECT 1 FROM window_v")) == DENIED
            assert state(lambda: nobody.execute("SELECT count(*) FROM window_v")) == DENIED
        with as_role(db, "maker") as maker:
            maker.execute("CREATE VIEW trick AS WITH window_v AS (SELECT v FROM closed_t) SELECT v FROM window_v")
            assert state(lambda: maker.execute("SELECT * FROM trick")) == DENIED
            assert state(lambda: maker.execute("WITH window_v AS (SELECT v FROM closed_t) SELECT v FROM window_v")) == DENIED
            maker.execute("DROP VIEW trick")
        admin.execute("DROP VIEW window_v")


def test_a_trigger_acts_with_the_rights_of_its_tables_owner(db: Db) -> None:
    with as_role(db, "maker") as maker, db.connect() as admin:
        maker.execute("CREATE TABLE bait (a TEXT)")
        maker.execute("CREATE TABLE loot (a TEXT)")
        maker.execute("CREATE TRIGGER theft AFTER INSERT ON bait BEGIN INSERT INTO loot SELECT v FROM closed_t; END")
        assert state(lambda: maker.execute("INSERT INTO bait VALUES ('x')")) == DENIED
        assert state(lambda: admin.execute("INSERT INTO bait VALUES ('x')")) == DENIED, "the administrator lends no rights to a trigger"
        admin.execute("GRANT SELECT ON closed_t TO maker")
        assert state(lambda: admin.execute("INSERT INTO bait VALUES ('x')")) is None
        admin.execute("REVOKE SELECT ON closed_t FROM maker")
        maker.execute("DROP TABLE bait, loot")
        maker.execute("CREATE TABLE own (id INTEGER PRIMARY KEY, v TEXT)")
        assert state(lambda: maker.execute("CREATE TABLE refers (a INTEGER REFERENCES closed_t (id))")) == DENIED
        assert state(lambda: maker.execute("CREATE TABLE refers (a INTEGER REFERENCES own (id))")) is None
        maker.execute("DROP TABLE refers, own")


def test_the_owner_of_a_table_does_everything_with_it_and_nobody_else_changes_it(db: Db) -> None:
    with as_role(db, "maker") as maker, as_role(db, "writer") as writer:
        maker.execute("CREATE TABLE mine (id INTEGER PRIMARY KEY, v TEXT)")
        maker.execute("INSERT INTO mine VALUES (1, 'm')")
        maker.execute("GRANT SELECT ON mine TO writer")
        assert writer.execute("SELECT * FROM mine").fetchall() == [(1, "m")]
        for statement in (
            "ALTER TABLE mine ADD COLUMN w TEXT",
            "DROP TABLE mine",
            "CREATE INDEX im ON mine (v)",
            "ALTER TABLE mine OWNER TO writer",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be owner of table mine"):
                writer.execute(statement.encode())
        maker.execute("ALTER TABLE mine RENAME TO ours")
        assert writer.execute("SELECT * FROM ours").fetchall() == [(1, "m")]
        maker.execute("TRUNCATE ours")
        maker.execute("DROP TABLE ours")
        with db.connect() as admin:
            admin.execute("CREATE TABLE ours (a INTEGER)")
            assert state(lambda: writer.execute("SELECT * FROM ours")) == DENIED
            assert state(lambda: maker.execute("SELECT * FROM ours")) == DENIED
            admin.execute("DROP TABLE ours")


def test_roles_and_rights_are_part_of_their_transaction(db: Db) -> None:
    with db.connect(autocommit=False) as admin:
        admin.execute("CREATE ROLE passing LOGIN")
        admin.execute("CREATE TABLE passing_t (a INTEGER)")
        admin.execute("GRANT SELECT ON passing_t TO passing")
        admin.execute("SET LOCAL ROLE passing")
        assert admin.execute("SELECT current_user, session_user <> current_user").fetchone() == ("passing", True)
        admin.execute("SELECT * FROM passing_t")
        assert state(lambda: admin.execute("INSERT INTO passing_t VALUES (1)")) == DENIED
        admin.rollback()
        assert state(lambda: admin.execute("GRANT SELECT ON open_t TO passing")) == "42704"
        admin.rollback()
        assert admin.execute("SELECT current_user").fetchone() != ("passing",)


def test_mistakes_get_postgresqls_errors(db: Db) -> None:
    with db.connect() as admin:
        admin.execute("CREATE ROLE team")
        admin.execute("CREATE ROLE member LOGIN IN ROLE team")
        admin.execute("GRANT SELECT ON open_t TO team")
        for statement, expected in (
            ("CREATE ROLE reader", "42710"), ("CREATE ROLE pg_mine", "42939"), ("ALTER ROLE missing LOGIN", "42704"),
            ("DROP ROLE missing", "42704"), ("DROP ROLE IF EXISTS missing", None), ("GRANT SELECT ON missing TO reader", "42P01"),
            ("GRANT SELECT ON open_t TO missing", "42704"), ("GRANT member TO team", "0LP01"), ("DROP ROLE team", "2BP01"),
            ("GRANT CONNECT ON open_t TO team", "0LP01"), ("GRANT CONNECT ON DATABASE other TO team", "3D000"),
            ("GRANT SELECT (v) ON open_t TO team", "0A000"), ("GRANT SELECT ON open_t TO team WITH GRANT OPTION", "0A000"),
            ("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO team", "0A000"), ("SET ROLE missing", "22023"),
            ("CREATE ROLE x PASSWORD secret", "42601"), ("CREATE ROLE x PASSWORD 'md5" + "0" * 32 + "'", "0A000"),
            ("CREATE ROLE x PASSWORD 'SCRAM-SHA-256$nonsense'", "22023"),
        ):  # fmt: skip
            assert state(lambda s=statement: admin.execute(s.encode())) == expected, statement  # type: ignore[misc]
        assert _fetch(db, "member", "SELECT count(*) > 0 FROM open_t") == [(True,)]
        admin.execute("REVOKE team FROM member")
        with as_role(db, "member") as member:
            assert state(lambda: member.execute("SELECT * FROM open_t")) == DENIED
        admin.execute("REVOKE SELECT ON open_t FROM team")
        admin.execute("DROP ROLE team, member")


def test_predefined_roles_cover_every_table(db: Db) -> None:
    with db.connect() as admin:
        admin.execute("CREATE USER everywhere")
        admin.execute("GRANT pg_read_all_data, pg_write_all_data TO everywhere")
        with as_role(db, "everywhere") as connection:
            assert connection.execute("SELECT v FROM closed_t").fetchall() == [("secret",)]
            connection.execute("UPDATE closed_t SET v = v WHERE id = 1")
            assert state(lambda: connection.execute("TRUNCATE closed_t")) == DENIED
        admin.execute("DROP ROLE everywhere")


def test_a_password_is_stored_as_a_verifier_and_shown_nowhere(db: Db) -> None:
    with db.connect() as admin:
        notices: list[str] = []
        admin.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        admin.execute(f"CREATE ROLE keeper LOGIN PASSWORD '{SECRET}' VALID UNTIL '2030-01-01' CONNECTION LIMIT 3".encode())
        ((stored,),) = admin.execute("SELECT verifier FROM triplicate_roles WHERE name = 'keeper'").fetchall()
        assert stored.startswith("SCRAM-SHA-256$4096:")
        assert state(lambda: admin.execute(f"ALTER ROLE keeper PASSWORD '{SECRET}' NONSENSE".encode())) == "42601"
        with pytest.raises(psycopg.Error) as raised:
            admin.execute(f"CREATE ROLE keeper PASSWORD '{SECRET}'".encode())
        assert SECRET not in str(raised.value)
        admin.execute("DROP ROLE keeper")
        assert not any(SECRET in notice for notice in notices)
    seen, found = 0, []
    for path in db.stand.cluster.folder.path.rglob("*"):
        # A bookie prepares and renames files meanwhile.
        with suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_size < 200_000_000:
                seen += 1
                found += [path] if SECRET.encode() in path.read_bytes() else []
    assert seen
    assert found == []


def test_psql_describes_roles_and_rights(db: Db) -> None:
    with db.connect() as admin:
        admin.execute("CREATE ROLE shown LOGIN CREATEROLE VALID UNTIL '2031-02-03' IN ROLE reader")
        admin.execute("GRANT SELECT, UPDATE ON closed_t TO shown")
        admin.execute("GRANT SELECT ON closed_t TO PUBLIC")
    roles = db.psql("-c", "\\du shown")
    assert roles.returncode == 0, roles.stderr
    assert roles.stdout.split("|")[0] == "shown"
    assert "Create role" in roles.stdout
    assert "{reader}" in roles.stdout
    for command in ("\\dp closed_t", "\\z closed_t"):
        rights = db.psql("-c", command)
        assert rights.returncode == 0, rights.stderr
        assert "shown=rw/triplicate" in rights.stdout
        assert "=r/triplicate" in rights.stdout
    with db.connect() as admin:
        admin.execute("REVOKE ALL ON closed_t FROM PUBLIC, shown")
        admin.execute("DROP ROLE shown")


def test_every_role_sees_what_there_is_and_its_own_name(db: Db) -> None:
    """As in PostgreSQL: names, definitions and sizes need no right."""
    query = "SELECT pg_table_size('closed_t') > 0, pg_total_relation_size('closed_t') > 0, relname FROM pg_class WHERE relname = 'closed_t'"
    assert _fetch(db, "reader", query) == [(True, True, "closed_t")]
    query = "SELECT rolname, rolsuper FROM pg_roles WHERE rolname IN (current_user, session_user)"
    assert _fetch(db, "reader", query) == [("reader", False)]
    assert (
        _fetch(db, "reader", "SELECT current_setting('role'), setting FROM pg_settings WHERE name = 'session_authorization'")[0][1]
        == "reader"
    )


def test_functions_and_the_information_schema_tell_the_rights(db: Db) -> None:
    asked = ("'open_t', 'SELECT'", "'open_t', 'INSERT'", "'writer', 'open_t', 'DELETE'")
    ask = "SELECT " + ", ".join(f"has_table_privilege({arguments})" for arguments in asked)
    assert _fetch(db, "reader", ask) == [(True, False, True)]
    assert _fetch(db, "maker", "SELECT has_database_privilege('roles', 'CREATE'), has_schema_privilege('public', 'USAGE')") == [
        (True, True)
    ]
    assert _fetch(db, "nobody", "SELECT has_database_privilege('nobody', 'roles', 'CREATE')") == [(False,)]
    query = "SELECT grantee, privilege_type FROM information_schema.table_privileges WHERE table_name = 'open_t' AND grantee = 'reader'"
    assert _fetch(db, "reader", query) == [("reader", "SELECT")]
    assert _fetch(db, "reader", "SELECT current_user, session_user, current_role, user") == [("reader",) * 4]
    assert _fetch(db, "reader", "SELECT rolname FROM pg_roles WHERE rolname = current_user") == [("reader",)]
    with db.connect() as admin:
        assert admin.execute("SELECT has_table_privilege('closed_t', 'DELETE')").fetchone() == (True,)
        assert admin.execute("SELECT rolpassword FROM pg_roles WHERE rolname = %s", ("reader",)).fetchone() == ("********",)
