"""Making a database of SQL text, which psql loads."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

from triplicate.cli.data_commands.sql_command import LEADER_WAIT_S, with_password
from triplicate.cli.terminal.client_run import run_with_client
from triplicate.cli.terminal.options import client_settings
from triplicate.client import Client
from triplicate.config import DatabaseClientSettings, SecuritySettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ArgumentError, ConfigError, ReplicaError
from triplicate.log import Logs
from triplicate.security import read_secret_file
from triplicate.sql import (
    BEGIN_MARK,
    MARKED_BYTES,
    TABLE_OF_CONTENTS,
    Administrator,
    begins_pg_dump,
    begins_sqlite_dump,
    connection_string,
    create_database,
    drop_database,
    is_cut_off,
    unreadable_folder,
    unreadable_form,
    wait_for_leader,
)

SQLITE_MAGIC = b"SQLite format 3\0"
SEARCHED_BYTES = 1024 * 1024
"""A text is searched for a statement up to this size; a larger one is taken to have one."""
_NO_STATEMENT = re.compile(rb"(?:\xef\xbb\xbf)?(?:[\s;]|--[^\n]*|/\*.*?(?:\*/|\Z))*+", re.DOTALL)


def is_sql_text(path: str) -> bool:
    """Whether a file is none of those that need no psql: a SQLite file, and what sqlite3's ``.dump`` or ``pg_dump`` writes in any form.

    Raises:
        ArgumentError: it is a folder, or has not one statement. A text that exports an empty database has none.
    """
    if os.path.isdir(path):
        raise ArgumentError(f"{path} {unreadable_folder(os.path.exists(os.path.join(path, TABLE_OF_CONTENTS)))}")
    begin, end = _edges(path)
    with open(path, "rb") as file:
        text = file.read(SEARCHED_BYTES + 1)
    is_export = begin.startswith(BEGIN_MARK.encode()) and not is_cut_off(begin, end)
    if len(text) <= SEARCHED_BYTES and not is_export and _NO_STATEMENT.fullmatch(text):
        raise ArgumentError(f"{path} has {'no statement' if text else 'no bytes'}, so there is nothing to import: check how it was written")
    is_dump = begins_sqlite_dump(begin) or begins_pg_dump(begin) or bool(unreadable_form(begin))
    return not begin.startswith(SQLITE_MAGIC) and not is_dump


def _edges(path: str) -> tuple[bytes, bytes]:
    """The first and the last bytes of a file."""
    with open(path, "rb") as file:
        begin = file.read(MARKED_BYTES)
        file.seek(max(0, file.seek(0, os.SEEK_END) - MARKED_BYTES))
        return begin, file.read()


def import_sql_text(metadata: str | None, path: str, name: str, key_id: str) -> None:
    """Create a database, and let psql run a file of SQL in it. The database is dropped again when a statement fails.

    Where the settings have a role and a password for databases, they become its administrator, as with `triplicate database create`.

    Raises:
        ConfigError: psql is not installed. ArgumentError: the end of an exported text is missing. ReplicaError: a statement failed; psql
            has printed its line and its error. SqlError: 42P04, the name is in use. EnvironmentFault: no node runs.
    """
    psql = shutil.which("psql")
    if psql is None:
        raise ConfigError("SQL text is loaded by psql, which is not installed (Debian: postgresql-client)")
    if is_cut_off(*_edges(path)):
        raise ArgumentError(f"{path} is not complete: the last line that database export writes is missing")
    settings, ca_file = client_settings(DatabaseClientSettings), client_settings(SecuritySettings).ca_file
    authority = ca_file and os.path.abspath(ca_file)
    target = ""

    async def create(client: Client) -> None:
        nonlocal target
        administrator = None
        if settings.role and settings.password_file:
            password = read_secret_file(settings.password_file, "database_client.password_file")
            administrator = Administrator.of_password(client, settings.role, password)
        logs = Logs(client, client_settings(LogClientSettings))
        await create_database(client, name, logs=logs, key_id=key_id, administrator=administrator)
        try:
            info = await wait_for_leader(client, name, LEADER_WAIT_S)
            target = connection_string(info, user=with_password(None), ca_file=authority)
        except BaseException:
            await drop_database(client, name)
            raise

    async def drop(client: Client) -> None:
        await drop_database(client, name)

    run_with_client(metadata, create)
    done = subprocess.run([psql, target, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", path], check=False)
    if done.returncode:
        run_with_client(metadata, drop)
        raise ReplicaError(f"{path} was not imported: psql ended with exit code {done.returncode}; database {name} is dropped again")
