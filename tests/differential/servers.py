"""The two compared servers: PostgreSQL from this machine's packages, and one of our databases served by real processes."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from tests.clients.stand import Stand
from triplicate.cli import local_cluster

USER = "tester"
DEBIAN = Path("/usr/lib/postgresql")
READY_S = 60.0
STOP_S = 20.0
SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off", "listen_addresses=", "shared_buffers=16MB")
"""Options without durability, with a socket in the test's folder as the only listener."""
SESSION = ("SET TIME ZONE 'UTC'", "SET client_min_messages = warning", "SET statement_timeout = '20s'")
"""Sent to both servers at the beginning of each connection."""


def find_postgresql() -> Path | None:
    """The folder with ``initdb`` and ``postgres``: Debian's newest, else the first in PATH; None without a server."""
    folders = [path for path in DEBIAN.glob("*/bin") if path.parent.name.isdigit()]
    newest = sorted(folders, key=lambda path: int(path.parent.name), reverse=True)
    named = [Path(found).parent for found in [shutil.which("initdb")] if found is not None]
    return next((path for path in [*newest, *named] if (path / "initdb").exists() and (path / "postgres").exists()), None)


class Database:
    """One of the two servers: how to connect to it."""

    def __init__(self, name: str, dsn: str) -> None:
        self.name = name
        self.dsn = dsn

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        connection = psycopg.connect(self.dsn, autocommit=True)
        for command in SESSION:
            connection.execute(command.encode())
        return connection

    def clean(self) -> None:
        """Remove everything that an earlier scenario made."""
        raise NotImplementedError


class PostgreSql(Database):
    """PostgreSQL, whose scenarios share one schema that is dropped and made."""

    def clean(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


ALTERED = ("CREATE TABLE altered (a int, b int)", "ALTER TABLE altered RENAME TO changed", "ALTER TABLE changed DROP COLUMN b")
"""Changes of a table that have SQLite resolve all views and triggers of the schema, on the leader and on followers."""


class Ours(Database):
    """One of our databases."""

    def clean(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            with contextlib.suppress(psycopg.Error):  # A scenario may have left a view that cannot be computed.
                for statement in ALTERED:
                    connection.execute(statement.encode())
            query = b"SELECT type, name FROM sqlite_schema WHERE type IN ('view', 'table') AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
            made = [(str(kind), str(name)) for kind, name in connection.execute(query) if not str(name).startswith("triplicate_")]
            # Views first, and children before the tables that they reference: each round drops tables without references.
            left = sorted(made, reverse=True)
            while left:
                kept: list[tuple[str, str]] = []
                for kind, name in left:
                    try:
                        connection.execute(f'DROP {kind} "{name}"'.encode())
                    except psycopg.Error:
                        kept.append((kind, name))
                assert len(kept) < len(left), f"these cannot be dropped: {kept}"
                left = kept


def account() -> dict[str, Any]:
    """Options that run PostgreSQL as the user nobody if this process is root, since it refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def postgresql(programs: Path) -> Iterator[PostgreSql]:
    """PostgreSQL in a temporary folder, with collation C, ended by its own id."""
    folder = Path(tempfile.mkdtemp(prefix="tp-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, account()["user"], account()["group"])
        _initialize(programs, folder)
        command = [str(programs / "postgres"), "-D", str(folder / "data"), "-k", str(folder), "-p", "5432"]
        for setting in SETTINGS:
            command += ["-c", setting]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **account())
        try:
            database = PostgreSql("PostgreSQL", f"host={folder} port=5432 dbname=postgres user={USER}")
            _await_ready(database, process, folder / "log")
            yield database
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _initialize(programs: Path, folder: Path) -> None:
    command = [str(programs / "initdb"), "-D", str(folder / "data"), "-U", USER, "-A", "trust", "--locale=C", "-E", "UTF8", "--no-sync"]
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, **account())
    assert done.returncode == 0, f"initdb failed: {done.stderr or done.stdout}"


def _await_ready(database: PostgreSql, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while True:
        assert process.poll() is None, f"PostgreSQL ended with code {process.returncode}: {log.read_text(errors='replace')[-2000:]}"
        try:
            psycopg.connect(database.dsn).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, f"PostgreSQL is not ready after {READY_S} s"
            time.sleep(0.05)


@contextlib.contextmanager
def ours() -> Iterator[Ours]:
    """A cluster of two nodes and the three bookies that a log needs, and a database on it. At the end the follower has it all."""
    place = Path(tempfile.mkdtemp(prefix="td-"))
    try:
        with local_cluster(place / "c", bookies=3, nodes=2) as cluster:
            database = Stand(cluster).create("compared")
            yield Ours("here", database.dsn())
            with database.writable() as leader:
                database.wait_for_position(database.followers()[0], leader)
    finally:
        shutil.rmtree(place, ignore_errors=True)
