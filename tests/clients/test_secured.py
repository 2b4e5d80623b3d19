"""Each client logs in at nodes that require TLS and a password, and is refused without."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psycopg
import pytest
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from tests.certificates import CertificateFolder
from tests.clients.foreign import JDBC_JAR, NODE_EXPECTED, PGX_EXPECTED, node_scenes, pgx_scenes
from tests.clients.secured import PASSWORD, ROLE, SecuredDb, SecuredStand, secured_stand
from tests.clients.stand import PSQL_S, READY_S, run, unique
from tests.waiting import wait_until
from triplicate.client import Client
from triplicate.sql import Administrator, connection_string, set_administrator


@pytest.fixture(scope="module")
def secured() -> Iterator[SecuredStand]:
    place = Path(tempfile.mkdtemp(prefix="tc-"))
    try:
        with secured_stand(place) as stand:
            yield stand
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def door(secured: SecuredStand) -> SecuredDb:
    return secured.create("secured")


def psql(door: SecuredDb, *words: str, password: str = PASSWORD, **variables: str) -> subprocess.CompletedProcess[str]:
    command = ["psql", f"{door.dsn()} {' '.join(words)}", "-X", "-q", "-A", "-t", "-c", "select current_user, 1"]
    environment = {**os.environ, "PGPASSWORD": password, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PSQL_S, check=False)


def test_psql_logs_in_with_channel_binding(door: SecuredDb) -> None:
    answer = psql(door, "channel_binding=require")
    assert (answer.returncode, answer.stdout) == (0, f"{ROLE}|1\n"), answer.stderr


@pytest.mark.parametrize(
    ("words", "password", "said"),
    [
        ("", "wrong", 'password authentication failed for user "anna"'),
        ("user=nobody", PASSWORD, 'password authentication failed for user "nobody"'),
        ("dbname=none", PASSWORD, 'password authentication failed for user "anna"'),
        ("sslmode=disable", PASSWORD, "accepts connections with TLS only"),
        ("sslmode=disable", "wrong", "accepts connections with TLS only"),
    ],
)
def test_psql_is_refused(door: SecuredDb, words: str, password: str, said: str) -> None:
    answer = psql(door, words, password=password)
    assert answer.returncode == 2
    assert said in answer.stderr


def test_psql_does_not_trust_another_authority(door: SecuredDb, tmp_path: Path) -> None:
    other = CertificateFolder(tmp_path / "other")
    answer = psql(door, f"sslrootcert={other.ca_file}")
    assert answer.returncode == 2
    assert "certificate verify failed" in answer.stderr


def test_psycopg_works_and_the_login_is_audited(door: SecuredDb) -> None:
    with door.connect(channel_binding="require", application_name="audited") as connection:
        assert connection.pgconn.ssl_in_use
        connection.execute("create table if not exists t(id integer primary key, x text)")
        connection.execute("insert into t values (1, 'one') on conflict do nothing")
        assert connection.execute("select x, current_user from t where id = %s", (1,)).fetchone() == ("one", ROLE)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        door.connect(password="wrong")
    event = door.stand.wait_for_event(event="login refused", reason="password")
    assert (event["database"], event["role"], event["address"], event["tls"]) == ("secured", ROLE, "127.0.0.1", "TLSv1.3")
    door.stand.wait_for_event(event="login accepted", method="SCRAM-SHA-256-PLUS")
    for file in door.stand.audit.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
        assert PASSWORD not in file.read_text()


def test_asyncpg_works(door: SecuredDb) -> None:
    async def scene() -> None:
        connection = await door.asyncpg()
        assert await connection.fetchval("select current_user") == ROLE
        await connection.close()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await door.asyncpg(password="wrong")
        with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match="TLS only"):
            await door.asyncpg(ssl=False)

    run(scene())


def test_node_postgres_works(door: SecuredDb) -> None:
    table = unique("node")
    with door.connect() as connection:
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, x INTEGER)".encode())
    seen = node_scenes(door, table, PGUSER=ROLE, PGPASSWORD=PASSWORD, CA_FILE=str(door.stand.certificates.ca_file))
    assert seen == NODE_EXPECTED


def test_pgx_works(door: SecuredDb) -> None:
    table = unique("pgx")
    with door.connect() as connection:
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, x INTEGER)".encode())
    options = f"user={ROLE} sslmode=verify-full sslrootcert={door.stand.certificates.ca_file}"
    assert pgx_scenes(door, table, options, PGPASSWORD=PASSWORD) == PGX_EXPECTED


def test_pgjdbc_works(door: SecuredDb, java: JavaGateway) -> None:
    assert JDBC_JAR.exists()
    port = door.stand.ports[door.leader()]
    options = f"sslmode=verify-full&sslrootcert={door.stand.certificates.ca_file}&connectTimeout=10"
    url = f"jdbc:postgresql://127.0.0.1:{port}/{door.name}?{options}"
    driver = java.jvm.java.sql.DriverManager
    connection = driver.getConnection(url, ROLE, PASSWORD)
    result = connection.createStatement().executeQuery("select current_user")
    assert result.next()
    assert result.getString(1) == ROLE
    connection.close()
    with pytest.raises(Py4JJavaError, match="password authentication failed"):
        driver.getConnection(url, ROLE, "wrong")
    with pytest.raises(Py4JJavaError, match="TLS only"):
        driver.getConnection(url.replace("verify-full", "disable"), ROLE, PASSWORD)


def test_the_command_line_finds_the_way_in(door: SecuredDb) -> None:
    environment = {
        **os.environ,
        "PGPASSWORD": PASSWORD,
        "TRIPLICATE_METADATA": door.stand.uri,
        "TRIPLICATE_SECURITY_CA_FILE": str(door.stand.certificates.ca_file),
    }

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        given = [sys.executable, "-m", "triplicate", *words]
        return subprocess.run(given, env=environment, capture_output=True, text=True, timeout=PSQL_S, check=False)

    for small in ((), ("--small",)):
        answer = command("sql", door.name, "-U", ROLE, *small, "-c", "select current_user")
        assert answer.returncode == 0, answer.stderr
        assert ROLE in answer.stdout
    text = command("sql", door.name, "--user", ROLE, "--dsn").stdout
    assert f"user={ROLE} " in text
    assert f"sslmode=verify-full sslrootcert={door.stand.certificates.ca_file}" in text
    shown = json.loads(command("database", "show", door.name, "--json").stdout)
    assert shown["administrator"] == ROLE
    assert "SCRAM" not in repr(shown)


def test_a_replaced_password_serves_on_every_node_at_once(secured: SecuredStand, tmp_path: Path) -> None:
    database = secured.create("replaced")
    file = tmp_path / "password"
    file.touch(mode=0o600)
    file.write_text("another password\n")
    words = ["database", "administrator", database.name, ROLE, "--password-file", str(file), "--metadata", secured.uri]
    answer = subprocess.run([sys.executable, "-m", "triplicate", *words], capture_output=True, text=True, timeout=PSQL_S, check=False)
    assert answer.returncode == 0, answer.stderr
    for node in secured.ports:
        secured.wait_for_event(event="administrator changed", database=database.name, role=ROLE)
        with database.connect_to(node, password="another password"):
            pass
        # Failed logins of earlier tests delay this answer, by as much as the limit of the connection strings of these tests.
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            database.connect_to(node, connect_timeout=round(READY_S))


def test_the_connection_string_of_the_library_knows_tls(secured: SecuredStand, door: SecuredDb) -> None:
    text = connection_string(door.info(), user=ROLE, ca_file=str(secured.certificates.ca_file))
    with psycopg.connect(text, password=PASSWORD) as connection:
        assert connection.pgconn.ssl_in_use


def test_another_node_takes_over_where_tls_is_required(secured: SecuredStand) -> None:
    """Nodes probe each other on the port that requires TLS of clients."""
    database = secured.create("failover")
    with database.writable() as connection:
        connection.execute("create table t(a integer)")
    old = database.leader()
    secured.kill(old)
    try:
        with database.writable() as connection:
            connection.execute("insert into t values (1)")
    finally:
        secured.start(old)


def test_databases_without_an_administrator_let_nobody_in(secured: SecuredStand) -> None:
    from triplicate.sql import create_database

    secured.with_client(lambda client: create_database(client, "closed"))
    database = SecuredDb(secured, "closed")

    def is_refused() -> bool:
        with pytest.raises(psycopg.OperationalError) as refused:
            database.connect("any", connect_timeout=round(READY_S))  # Earlier refusals delay the answer.
        return "is starting" not in str(refused.value) and "password authentication failed" in str(refused.value)

    wait_until(is_refused, READY_S, "the database has started, and refuses the login")

    async def open_it(client: Client) -> None:
        await set_administrator(client, "closed", Administrator.of_password(client, ROLE, PASSWORD))

    secured.with_client(open_it)
    secured.wait_for_event(event="administrator changed", database="closed")
    with database.writable() as connection:
        assert connection.execute("select 1").fetchone() == (1,)
