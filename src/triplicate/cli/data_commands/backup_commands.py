"""``triplicate database``: backup, verify-backup, restore, clone, export and import."""

from __future__ import annotations

import getpass
import os
import socket
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from triplicate.cli.data_commands.snapshot_requests import time_text
from triplicate.cli.data_commands.sql_text_import import import_sql_text, is_sql_text
from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.client_run import run_with_client
from triplicate.cli.terminal.options import client_settings, metadata_option
from triplicate.cli.terminal.output import print_json, print_table, remarks
from triplicate.client import Client
from triplicate.config.log_settings import LogClientSettings
from triplicate.log import KeySource, KnownKeys, Logs, read_keys
from triplicate.runtime import real_host
from triplicate.sql import (
    AtPosition,
    AtTime,
    AtTransaction,
    BackupManifest,
    NewDatabase,
    Target,
    back_up_database,
    clone_database,
    export_database,
    import_database,
    parse_number,
    parse_time,
    restore_database,
    verify_backup,
)

Command = Callable[..., Any]
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_replace = click.option(
    "--replace", "replaces", is_flag=True, help="Put it in the place of the database of this name, which is dropped (and can be undeleted)."
)
_key = click.option("--key", "key_id", metavar="ID", default="", help="Encrypt its log and snapshots under this key.")


_key_file = click.option(
    "--key-file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    envvar="TRIPLICATE_BACKUP_KEY_FILE",
    help="The keys of encrypted backups, as `triplicate log key new` makes them. Default: TRIPLICATE_BACKUP_KEY_FILE.",
)


def keys_of(path: str | None) -> KeySource | None:
    """The keys in a file. Raises ConfigError: it cannot be read, or others may read it."""
    if path is None:
        return None
    found = KnownKeys(read_keys(path))
    found.place = path
    return found


def note_clear(path: str, manifest: BackupManifest) -> None:
    """Tell an operator who has given keys that a backup is in clear: it may have been put in the place of an encrypted one."""
    if not manifest.key_id:
        remarks.print(
            f"the backup at {path} is not encrypted: no key of --key-file protects it, and a user with write access there can change it"
        )


def _maker() -> str:
    """The user and the machine. A container may have no name for the user."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def work_folder_option(command: Command) -> Command:
    """Add ``--work-folder``. The command receives `work_folder`, or None."""
    return click.option(
        "--work-folder",
        type=click.Path(exists=True, file_okay=False),
        metavar="FOLDER",
        help="Where the copy of the database is made on the way. It needs room for the whole database. Default: the system's folder for "
        "temporary files.",
    )(command)


def target_options(command: Command) -> Command:
    """Add the options that name a point in time. The command receives `target`, or None."""

    def collected(to_position: str | None, to_time: str | None, to_transaction: str | None, **arguments: Any) -> Any:
        return command(target=chosen_target(to_position, to_time, to_transaction), **arguments)

    collected.__name__ = command.__name__
    collected.__doc__ = command.__doc__
    collected.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    wrapped: Any = collected
    for name, metavar, text in (
        ("--to-transaction", "ID", "As it was behind this transaction; the id is that of pg_current_xact_id()."),
        (
            "--to-time",
            "TIME",
            "As it was at this time: 2026-01-31 12:00:00, in UTC, or with an offset behind it.",
        ),
        ("--to-position", "N", "As it was at this position of its log."),
    ):
        wrapped = click.option(name, metavar=metavar, help=text)(wrapped)
    return wrapped  # type: ignore[no-any-return]


def chosen_target(position: str | None, time: str | None, transaction: str | None) -> Target | None:
    """The point in time that one of the options names; None for none.

    Raises:
        UsageError: several are given. ArgumentError: a value is wrong.
    """
    if sum(one is not None for one in (position, time, transaction)) > 1:
        raise click.UsageError("give one of --to-position, --to-time and --to-transaction")
    if position is not None:
        return AtPosition(parse_number(position, "position"))
    if time is not None:
        return AtTime(parse_time(time))
    return None if transaction is None else AtTransaction(parse_number(transaction, "transaction's id"))


@click.command()
@metadata_option
@click.argument("name", metavar="DATABASE")
@click.argument("path", metavar="DEST", type=click.Path())
@click.option("--incremental", is_flag=True, help="Add what was committed since to the backup in folder DEST.")
@click.option("--replace", "replaces", is_flag=True, help="Replace the backup at DEST, once the new one is complete.")
@_key_file
@work_folder_option
@_json
def backup(
    metadata: str | None,
    name: str,
    path: str,
    incremental: bool,
    replaces: bool,
    key_file: str | None,
    work_folder: str | None,
    as_json: bool,
) -> None:
    """Back up a database while it is read and written.

    DEST is a folder, or one file if its name ends with .tar. The backup has everything that was acknowledged before, whole transactions
    only. It is read from the bookies: no node needs to run. Only the owner of its files may read them. With --key-file they are encrypted
    under the newest key of that file; keep a copy of it elsewhere.
    """
    if incremental and replaces:
        raise click.UsageError("--incremental adds to a backup; --replace makes another in its place")
    place, path = path, os.path.abspath(path)

    def unrecorded(error: Exception) -> None:
        remarks.print(f"the backup is complete, but is not in triplicate_backups: {str(error) or 'the metadata did not answer in time'}")

    async def work(client: Client) -> None:
        logs = Logs(client, client_settings(LogClientSettings))
        keys = keys_of(key_file)
        with tempfile.TemporaryDirectory(prefix="triplicate-backup-", dir=work_folder) as folder:
            made = await back_up_database(
                client,
                logs,
                name,
                path,
                is_incremental=incremental,
                replaces=replaces,
                keys=keys,
                work_folder=folder,
                place=place,
                maker=_maker(),
                on_unrecorded=unrecorded,
            )
        if made is None:
            remarks.print(f"nothing was committed in database {name} since the backup at {path}")
            if as_json:
                print_json(None)
        elif as_json:
            print_json(manifest_facts(made))
        else:
            part = made.parts[-1]
            remarks.print(f"database {name} is backed up at {path} to position {made.end}; {part.file} has {part.size_bytes} bytes")

    run_with_client(metadata, work)


@click.command(name="verify-backup")
@click.argument("path", metavar="BACKUP", type=click.Path(exists=True))
@_key_file
@_json
def verify_backup_command(path: str, key_file: str | None, as_json: bool) -> None:
    """Compare every part of a backup with its digest, and decrypt it if it is encrypted. No cluster is needed.

    Exit code 1 if a part was changed or is missing, or the key is another.
    """
    path = os.path.abspath(path)

    async def work() -> None:
        keys = keys_of(key_file)
        manifest = await verify_backup(real_host("backup"), path, keys)
        if keys is not None:
            note_clear(path, manifest)
        if as_json:
            print_json(manifest_facts(manifest))
            return
        rows = [(part.file, part.first, part.end, time_text(part.time_ms), part.size_bytes) for part in manifest.parts]
        title = f"backup of database {manifest.database}: verified"
        print_table(("part", "from", "to", "log time (UTC)", "bytes"), rows, right=("from", "to", "bytes"), title=title)

    run_loop(work())


@click.command()
@metadata_option
@click.argument("path", metavar="BACKUP", type=click.Path(exists=True))
@click.argument("name", metavar="DATABASE")
@target_options
@_replace
@_key
@click.option("--unencrypted", is_flag=True, help="Restore a database whose log was encrypted without encryption.")
@_key_file
@work_folder_option
@_json
def restore(
    metadata: str | None,
    path: str,
    name: str,
    target: Target | None,
    replaces: bool,
    key_id: str,
    unencrypted: bool,
    key_file: str | None,
    work_folder: str | None,
    as_json: bool,
) -> None:
    """Restore a backup as a database of any name, on any cluster, at its end or at an earlier point in time.

    The whole backup is verified before anything is changed. Roles, rights and the administrator are those of the backup.
    """
    path = os.path.abspath(path)

    async def work(client: Client) -> None:
        logs = Logs(client, client_settings(LogClientSettings))
        new = NewDatabase(name, key_id=key_id, replaces=replaces)
        with tempfile.TemporaryDirectory(prefix="triplicate-restore-", dir=work_folder) as folder:
            keys = keys_of(key_file)
            noted = None if keys is None else partial(note_clear, path)
            info = await restore_database(client, logs, path, target, new, folder, is_unencrypted=unencrypted, keys=keys, on_manifest=noted)
        begin = (await logs.head(info.log)).first_offset
        if as_json:
            print_json({"database": info.name, "log": info.log, "position": begin})
        else:
            remarks.print(f"database {info.name} is restored as it was at position {begin}; open it with: triplicate sql {info.name}")

    run_with_client(metadata, work)


@click.command()
@metadata_option
@click.argument("name", metavar="DATABASE")
@click.argument("new_name", metavar="NEW_DATABASE")
@target_options
@_replace
@_key
@work_folder_option
@_json
def clone(
    metadata: str | None,
    name: str,
    new_name: str,
    target: Target | None,
    replaces: bool,
    key_id: str,
    work_folder: str | None,
    as_json: bool,
) -> None:
    """Make a database that begins as another one is now, or was at a point in time that is kept. The two are independent."""

    async def work(client: Client) -> None:
        logs = Logs(client, client_settings(LogClientSettings))
        new = NewDatabase(new_name, key_id=key_id, replaces=replaces)
        with tempfile.TemporaryDirectory(prefix="triplicate-clone-", dir=work_folder) as folder:
            info = await clone_database(client, logs, name, target, new, folder)
        begin = (await logs.head(info.log)).first_offset
        if as_json:
            print_json({"database": info.name, "log": info.log, "position": begin})
        else:
            remarks.print(f"database {info.name} begins as {name} was at position {begin}; open it with: triplicate sql {info.name}")

    run_with_client(metadata, work)


@click.command()
@metadata_option
@click.argument("name", metavar="DATABASE")
@click.argument("path", metavar="FILE", type=click.Path())
@click.option(
    "--format",
    "form",
    type=click.Choice(("sqlite", "sql")),
    default="sqlite",
    show_default=True,
    help="A SQLite file, or SQL text for psql.",
)
@target_options
def export(metadata: str | None, name: str, path: str, form: str, target: Target | None) -> None:
    """Write a database, as it is now or was at a point in time that is kept, as a plain SQLite file, or as SQL text.

    Other programs can open the file. It has neither roles nor rights, and nothing else of Triplicate's. SQL text is loaded into a new
    database by `triplicate sql`.
    """
    path = os.path.abspath(path)

    async def work(client: Client) -> None:
        logs = Logs(client, client_settings(LogClientSettings))
        await export_database(client, logs, name, target, path, as_sql=form == "sql")
        remarks.print(f"database {name} is exported to {path}")

    run_with_client(metadata, work)


@click.command(name="import")
@metadata_option
@click.argument("path", metavar="FILE", type=click.Path(exists=True))
@click.argument("name", metavar="DATABASE")
@_replace
@_key
@work_folder_option
def import_command(metadata: str | None, path: str, name: str, replaces: bool, key_id: str, work_folder: str | None) -> None:
    """Make a database of a SQLite file, or of the text of sqlite3's .dump or PostgreSQL's pg_dump; or of SQL text, which psql loads.

    The file is not changed. Definitions and values in it that a database would refuse are named, and nothing is made then. The database has
    no roles and no administrator; owners, rights and comments of a dump are left out and counted. Other SQL text is loaded into a database
    that is created as by `triplicate database create`, and is dropped again if a statement fails.
    """
    path = os.path.abspath(path)
    if is_sql_text(path):
        if replaces:
            raise click.UsageError("SQL text is loaded into a new database; --replace is for SQLite files and dumps")
        import_sql_text(metadata, path, name, key_id)
        remarks.print(f"database {name} is imported; open it with: triplicate sql {name}")
        return

    async def work(client: Client) -> None:
        logs = Logs(client, client_settings(LogClientSettings))
        with tempfile.TemporaryDirectory(prefix="triplicate-import-", dir=work_folder) as folder:
            new = NewDatabase(name, key_id=key_id, replaces=replaces)
            info = await import_database(client, logs, path, new, folder, remark=remarks.print)
        remarks.print(f"database {info.name} is imported; open it with: triplicate sql {info.name}")

    run_with_client(metadata, work)


def manifest_facts(manifest: BackupManifest) -> dict[str, object]:
    """The facts of a backup for JSON, without the administrator's verifier."""
    return {
        "database": manifest.database,
        "log": manifest.log,
        "position": manifest.end,
        "time_ms": manifest.parts[-1].time_ms,
        "key": manifest.key_id or None,
        "parts": [
            {"file": one.file, "kind": one.kind.value, "bytes": one.size_bytes, "digest": one.digest, "first": one.first, "end": one.end}
            for one in manifest.parts
        ],
    }


COMMANDS = (backup, verify_backup_command, restore, clone, export, import_command)
