"""Backups of the databases of a cluster, as a whole: made, verified, restored, and clones without files."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace

from triplicate.client import Client
from triplicate.errors import ArgumentError, TriplicateError
from triplicate.log import KeySource, Logs
from triplicate.runtime import Host, deadline_after, shielded, timeout_at
from triplicate.sql.backup import backup_files
from triplicate.sql.backup.backup_files import Backup, open_backup, rebuild
from triplicate.sql.backup.backup_writer import MAKING, BackupWriter
from triplicate.sql.backup.core.backup_records import record_of
from triplicate.sql.backup.core.manifest import Manifest
from triplicate.sql.backup.core.part_cipher import BackupKey
from triplicate.sql.backup.core.target import Target
from triplicate.sql.backup.past_copy import PastCopies
from triplicate.sql.backup.pg_dump import is_pg_dump, load_pg_dump
from triplicate.sql.backup.plain_files import adopt_plain, make_plain
from triplicate.sql.backup.sql_dump import write_dump
from triplicate.sql.backup.sqlite_dump import is_sqlite_dump, load_sqlite_dump
from triplicate.sql.hosting.database_directory import Administrator, DatabaseInfo, read_info
from triplicate.sql.hosting.recorded_backups import record_backup
from triplicate.sql.hosting.restoring import NewDatabase, check_name, create_from_file, source_of
from triplicate.sql.storage.sqlite_copy import delete_file, on_disk

_WORK_NAME, _DUMPED_NAME = "work.db", "dumped.db"
RECORD_LIMIT_S = 10.0
"""Longest wait for the metadata to record a backup that is complete."""


async def back_up_database(
    client: Client,
    logs: Logs,
    name: str,
    path: str,
    *,
    is_incremental: bool = False,
    replaces: bool = False,
    keys: KeySource | None = None,
    work_folder: str | None = None,
    place: str = "",
    maker: str = "",
    on_unrecorded: Callable[[Exception], object] | None = None,
) -> Manifest | None:
    """Make a full backup of a database, or add the records since to one.

    Args:
        path: a folder, or a file ``*.tar``; absolute.
        is_incremental: add to the backup that is there. replaces: replace it.
        keys: encrypt a full backup under the newest one. An increment has the key of its backup.
        work_folder: an empty folder for the copy in clear on the way; needed for a full backup with a key.
        place, maker: how the record in the metadata names the backup and its maker; `path` and the host's name by default.
        on_unrecorded: called with the error if the backup is complete, and could not be recorded.

    Returns:
        What the backup has now; None if there was nothing to add.

    Raises:
        SqlError: 3D000, there is no such database. ArgumentError: there is no key. Also the errors of `BackupWriter.full` and
        `BackupWriter.increment`.
    """
    info = await read_info(client, name)
    writer = BackupWriter(client.host, logs, source_of(info))
    if is_incremental:
        made = await writer.increment(path, keys)
    else:
        made = await writer.full(path, replace=replaces, key=None if keys is None else _newest(keys), work_folder=work_folder)
    if made is not None:
        try:
            async with timeout_at(deadline_after(client.host.clock, RECORD_LIMIT_S)):
                await record_backup(client, info.identity, record_of(made, place or path, maker or client.host.name))
        except (TriplicateError, TimeoutError) as error:
            client.host.trace("sql.backup_not_recorded", database=name, position=made.end, error=repr(error))
            if on_unrecorded is not None:
                on_unrecorded(error)
    return made


def _newest(keys: KeySource) -> BackupKey:
    key_id = keys.newest()
    key = None if key_id is None else keys.find(key_id)
    if key_id is None or key is None:
        raise ArgumentError(f"there is no key in {keys.place}: make one with `triplicate log key new`")
    return BackupKey(key_id, key)


async def verify_backup(host: Host, path: str, keys: KeySource | None = None) -> Manifest:
    """Compare every part of a backup with its digest, and decrypt it where it is encrypted.

    Raises:
        ArgumentError: there is none, or its key is missing. BackupDamaged: it was changed, or parts are missing. FormatError: a later
        release wrote it.
    """
    worker = host.new_worker("sql-verify-backup")

    def check() -> Backup:
        backup = open_backup(host, path, keys)
        backup_files.verify(host, backup)
        return backup

    try:
        return (await on_disk(worker, check)).manifest
    finally:
        await shielded(worker.close())


async def restore_database(
    client: Client,
    logs: Logs,
    path: str,
    target: Target | None,
    new: NewDatabase,
    work_folder: str,
    *,
    is_unencrypted: bool = False,
    keys: KeySource | None = None,
    on_manifest: Callable[[Manifest], object] | None = None,
) -> DatabaseInfo:
    """Make a database of a backup, on any cluster. The whole backup is verified before anything is changed.

    Args:
        path: of the backup. target: the point in time; None for its end.
        new: the lease and the administrator are those of the backup, unless it has an administrator.
        work_folder: an empty folder for a copy of the database.
        is_unencrypted: whether a database whose log was encrypted may be restored without a key.
        keys: of an encrypted backup.
        on_manifest: called with the manifest before anything is changed.

    Raises:
        SqlError: 42P04, the name is in use. ArgumentError: there is no backup, or a key is missing. BackupDamaged: it fails a digest, or
        its parts are no chain. NotKept: it does not reach to the target. Also the errors of `create_from_file`.
    """
    await check_name(client, new.name, replaces=new.replaces)
    worker = client.host.new_worker("sql-restore-backup")
    work = os.path.join(work_folder, _WORK_NAME)
    try:
        backup: Backup = await on_disk(worker, open_backup, client.host, path, keys)
        manifest = backup.manifest
        if on_manifest is not None:
            on_manifest(manifest)
        if manifest.is_encrypted and not new.key_id and not is_unencrypted:
            raise ArgumentError(
                f"the log of database {manifest.database!r} was encrypted: give --key ID to encrypt that of {new.name!r}, or --unencrypted"
            )
        await on_disk(worker, rebuild, client.host, backup, target, work)
        administrator = None if manifest.administrator is None else Administrator(*manifest.administrator)
        new = replace(new, lease_ms=manifest.lease_ms, administrator=new.administrator or administrator)
        return await create_from_file(client, logs, work, bytes.fromhex(manifest.identity), new)
    finally:
        await shielded(on_disk(worker, delete_file, client.host, work))
        await shielded(worker.close())


async def clone_database(client: Client, logs: Logs, name: str, target: Target | None, new: NewDatabase, work_folder: str) -> DatabaseInfo:
    """Make a database of another one, as it was at a point in time. The log of a clone is encrypted under the key of the other's.

    Args:
        target: None for now. new, work_folder: as in `restore_database`.

    Raises:
        SqlError: 3D000, 42P04. NotKept: the point is not kept. Also the errors of `PastCopies.make` and `create_from_file`.
    """
    await check_name(client, new.name, replaces=new.replaces)
    info = await read_info(client, name)
    new = replace(
        new,
        lease_ms=info.lease_ms,
        administrator=new.administrator or info.administrator,
        key_id=new.key_id or (await logs.head(info.log)).key_id,
    )
    work = os.path.join(work_folder, _WORK_NAME)
    try:
        await PastCopies(client.host, logs, source_of(info)).make(target, work)
        return await create_from_file(client, logs, work, info.identity, new)
    finally:
        worker = client.host.new_worker("sql-clone")
        await shielded(on_disk(worker, delete_file, client.host, work))
        await shielded(worker.close())


async def export_database(client: Client, logs: Logs, name: str, target: Target | None, path: str, *, as_sql: bool = False) -> None:
    """Write a database as a plain SQLite file, or as SQL text that psql loads, without the internal tables, roles and rights.

    Args:
        target: the point in time; None for now. path: absolute; no file has it.

    Raises:
        SqlError: 3D000. ArgumentError: there is a file already, or the database has something that SQL text cannot have. NotKept: the point
        is not kept. Also the errors of `PastCopies.make`.
    """
    host, info = client.host, await read_info(client, name)
    worker = host.new_worker("sql-export")
    work, text = path + MAKING, path + MAKING + ".sql"
    try:
        await on_disk(worker, _check_absent, host, path)
        state = await PastCopies(host, logs, source_of(info)).make(target, work)
        if as_sql:
            await on_disk(worker, write_dump, host, work, text, f"database {name} as it was at position {state.position}")
        else:
            await on_disk(worker, make_plain, work)
        await on_disk(worker, _rename, host, text if as_sql else work, path)
    finally:
        for file in (work, text):
            await shielded(on_disk(worker, delete_file, host, file))
        await shielded(worker.close())


def _check_absent(host: Host, path: str) -> None:
    if host.disk.exists(path):
        raise ArgumentError(f"{path} is there already: give another name")


def _rename(host: Host, work: str, path: str) -> None:
    with closing(host.disk.open(work)) as file:
        file.sync()
    host.disk.rename(work, path)
    host.disk.sync_directory(os.path.dirname(path))


async def import_database(
    client: Client, logs: Logs, path: str, new: NewDatabase, work_folder: str, *, remark: Callable[[str], None] | None = None
) -> DatabaseInfo:
    """Make a database of a plain SQLite file, or of the text that ``.dump`` of the sqlite3 shell or PostgreSQL's ``pg_dump`` writes.

    The file is not changed.

    Args:
        path: absolute. work_folder: an empty folder for copies of the file.
        remark: is called with the number of statements of a dump of PostgreSQL's that were left out, if any were.

    Raises:
        SqlError: 42P04, the name is in use. ArgumentError: the file has definitions or values that a database refuses; they are named.
        Also the errors of `create_from_file`.
    """
    await check_name(client, new.name, replaces=new.replaces)
    identity = client.host.entropy.stream("sql.import").randbytes(16)
    worker = client.host.new_worker("sql-import")
    work, dumped, source = os.path.join(work_folder, _WORK_NAME), os.path.join(work_folder, _DUMPED_NAME), path
    left_out: Mapping[str, int] = {}
    try:
        if await on_disk(worker, is_sqlite_dump, client.host, path):
            await on_disk(worker, load_sqlite_dump, client.host, path, dumped)
            source = dumped
        elif await on_disk(worker, is_pg_dump, client.host, path):
            left_out = await on_disk(worker, load_pg_dump, client.host, path, dumped)
            source = dumped
        await on_disk(worker, adopt_plain, client.host, source, work, identity, path)
        info = await create_from_file(client, logs, work, identity, new)
        if left_out and remark is not None:
            remark(f"left out: {', '.join(f'{count} {kind}' for kind, count in left_out.items())}")
        return info
    finally:
        for file in (work, dumped):
            await shielded(on_disk(worker, delete_file, client.host, file))
        await shielded(worker.close())
