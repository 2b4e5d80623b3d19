"""``triplicate sql``: a prompt on a database: psql if it is installed, else a small built-in prompt."""

from __future__ import annotations

import getpass
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.client_run import client_of
from triplicate.cli.terminal.options import client_settings, cluster_uri, metadata_option
from triplicate.cli.terminal.output import print_table, remarks
from triplicate.config import DatabaseClientSettings, SecuritySettings
from triplicate.errors import ConfigError, EnvironmentFault
from triplicate.security import read_secret_file
from triplicate.sql import DatabaseInfo, connection_string, database_info, wait_for_leader

if TYPE_CHECKING:
    import psycopg

LEADER_WAIT_S = 10.0
NO_PASSWORD = "no password supplied"
"""libpq's words where the server asks for a password and none is known."""


@click.command()
@metadata_option
@click.argument("name", metavar="DATABASE")
@click.option("-c", "--command", "commands", multiple=True, help="Run this statement and exit; can be repeated.")
@click.option("--any-node", is_flag=True, help="Connect to any node, including read-only ones. Default: the leader.")
@click.option("--small", is_flag=True, help="Use the small prompt even if psql is installed.")
@click.option("-U", "--user", metavar="ROLE", help="The role. Default: database_client.role, or the name of the system's user.")
@click.option("--dsn", "print_dsn", is_flag=True, help="Print the connection string on standard output and exit.")
def sql(metadata: str | None, name: str, commands: tuple[str, ...], any_node: bool, small: bool, user: str | None, print_dsn: bool) -> None:
    """Open a database at a prompt.

    Statements are in PostgreSQL's dialect as far as docs/sql.md says, and otherwise in SQLite's. Anything that speaks PostgreSQL connects
    in the same way: the connection string is printed on standard error at the start, and --dsn prints it alone. While no node leads the
    database, as after its creation or the loss of a leader, the prompt waits up to 10 s for the leader.

    A password comes from PGPASSWORD, PGPASSFILE or a prompt, as psql has them, or for database_client.role from
    database_client.password_file. Where the nodes have TLS, their certificates are verified by the authority in security.ca_file.
    """
    if print_dsn and commands:
        raise click.UsageError("--dsn prints the connection string and exits; it runs no --command")
    uri = cluster_uri(metadata)

    async def fetch_info() -> DatabaseInfo:
        async with client_of(uri) as client:
            if any_node or print_dsn:
                return await database_info(client, name)
            return await wait_for_leader(client, name, LEADER_WAIT_S)

    user = with_password(user)
    ca_file = client_settings(SecuritySettings).ca_file
    target = connection_string(run_loop(fetch_info()), user=user, any_node=any_node, ca_file=ca_file and os.path.abspath(ca_file))
    if print_dsn:
        click.echo(target)
        return
    remarks.print(f"connection string: {target}")
    psql = shutil.which("psql")
    if psql is not None and not small:
        arguments = [psql, target, "-X"] + [word for command in commands for word in ("-c", command)]
        sys.stdout.flush()
        os.execv(psql, arguments)
    run_small_prompt(target, commands)


def with_password(user: str | None) -> str:
    """The role to log in as. Its password is put into the environment of this process, from which libpq and psql take it.

    Args:
        user: the given role; None for the one in the settings, or the system's user.

    Raises:
        ConfigError: the file with the password cannot be used.
    """
    settings = client_settings(DatabaseClientSettings)
    role = user or settings.role or getpass.getuser()
    if role == settings.role and settings.password_file and not {"PGPASSWORD", "PGPASSFILE"} & set(os.environ):
        os.environ["PGPASSWORD"] = read_secret_file(settings.password_file, "database_client.password_file")
    return role


def run_small_prompt(target: str, commands: tuple[str, ...]) -> None:
    """Run statements from the command line, a terminal or a pipe, each ended by a semicolon.

    Raises:
        ConfigError: neither psql nor psycopg is installed. EnvironmentFault: no node answers.
    """
    try:
        import psycopg
    except ImportError:
        raise ConfigError("a prompt needs psql (Debian: postgresql-client) or psycopg (pip install 'triplicate[spark]')") from None
    try:
        connection = _connected(target)
    except psycopg.OperationalError as error:
        raise EnvironmentFault(f"no node accepts the connection: {error}") from None
    with connection:
        succeeded = [run_statement(connection, command) for command in commands]
        if not commands:
            for statement in statements_from_input():
                run_statement(connection, statement)
    if not all(succeeded):
        sys.exit(1)


def _connected(target: str) -> psycopg.Connection[Any]:
    """Connect. A password that is neither in the environment nor in a file is asked for."""
    import psycopg

    try:
        return psycopg.connect(target, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        if NO_PASSWORD not in str(error) or not sys.stdin.isatty():
            raise
    return psycopg.connect(target, autocommit=True, connect_timeout=5, password=getpass.getpass())


def statements_from_input() -> Any:
    """Yield statements until the end of input. A statement may span lines."""
    is_terminal = sys.stdin.isatty()
    waiting = ""
    while True:
        if is_terminal:
            sys.stderr.write("   ... " if waiting else "sql> ")
            sys.stderr.flush()
        line = sys.stdin.readline()
        if not line or (not waiting and line.strip() in ("\\q", "exit", "quit")):
            break
        waiting += line
        if waiting.rstrip().endswith(";"):
            yield waiting
            waiting = ""
    if waiting.strip():
        yield waiting


def run_statement(connection: psycopg.Connection[Any], statement: str) -> bool:
    """Run one statement and print its rows, its result or its error; returns False if it failed."""
    import psycopg

    try:
        cursor = connection.execute(statement.encode())
    except psycopg.Error as error:
        remarks.print(f"{error.sqlstate or ''} {error}")
        return False
    if cursor.description is not None:
        print_table([column.name for column in cursor.description], cursor.fetchall())
    remarks.print(cursor.statusmessage or "")
    return True
