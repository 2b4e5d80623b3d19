"""Databases that begin with a content: restored from a backup, cloned from another one, or imported from a SQLite file.

The content becomes the first snapshot of a new log, which goes on at the position and behind the epoch of the content. To nodes it looks
like any log that was truncated behind a snapshot: they load it and follow. The database appears in the list, or takes the place of
another one there, only when all of this is complete.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

from triplicate.client import Client
from triplicate.config.log_settings import LogSettings
from triplicate.errors import ArgumentError, LogReplaced, NodeExists, SqlError, TriplicateError
from triplicate.log import CHUNK_BYTES, Logs, SnapshotHeader
from triplicate.metadata import create_identified, own_paths
from triplicate.runtime import Host, fault_point, shielded
from triplicate.sql.backup.past_copy import DatabaseLog
from triplicate.sql.backup.work_file import WorkFile, WorkFileState
from triplicate.sql.hosting.database_directory import LEASE_S, Administrator, DatabaseInfo, encode_info, log_purpose, read_info
from triplicate.sql.hosting.dropping import replace_database
from triplicate.sql.storage.sqlite_copy import on_disk
from triplicate.sql.storage.sqlite_file import SQLITE_PAGE_SIZE_AT
from triplicate.sql.storage.sqlite_snapshots import CONTENT, MACHINE

EPOCHS_APART = 1024
"""The first epoch of such a database lies this far behind that of its content, and of the database that it replaces.

Ids of transactions have the epoch in them. Those that were committed behind the content, and are not part of it, are not given again: a
client that asks for one learns that it is not there.
"""
_EPOCH_MAX = 1 << 23


@dataclass(frozen=True, slots=True)
class NewDatabase:
    """The properties of a new database, besides its content.

    Args:
        key_id: the key under which its log is encrypted; empty for none.
        settings: of its log.
        replaces: whether it may take the place of a database of this name.
    """

    name: str
    lease_ms: int = round(LEASE_S * 1000)
    administrator: Administrator | None = None
    key_id: str = ""
    settings: LogSettings | None = None
    replaces: bool = False


def source_of(info: DatabaseInfo) -> DatabaseLog:
    """A database, as copies of it are made."""
    administrator = info.administrator
    return DatabaseLog(
        info.name,
        info.identity,
        info.log,
        info.created_ms,
        info.lease_ms,
        None if administrator is None else (administrator.name, administrator.verifier),
    )


async def check_name(client: Client, name: str, *, replaces: bool) -> DatabaseInfo | None:
    """The database of this name, if there is one. Call it before any work.

    Raises:
        SqlError: 42P04, there is one, and it must not be replaced. ArgumentError: it is no valid name.
    """
    own_paths.database_path(client.metadata.own_root, name)
    try:
        found = await read_info(client, name)
    except SqlError as error:
        if error.sqlstate != "3D000":
            raise
        return None
    if not replaces:
        raise SqlError("42P04", f'database "{name}" already exists: give --replace to put this one in its place, or another name')
    return found


@fault_point("sql.restore_database")
async def create_from_file(client: Client, logs: Logs, path: str, identity: bytes, new: NewDatabase) -> DatabaseInfo:
    """Make a database of a SQLite file with the internal tables. The file is changed.

    Args:
        identity: of the database that the file is a copy of, 16 bytes.

    Raises:
        SqlError: 42P04, the name is in use. BackupDamaged: the file is no sound copy. EnvironmentFault: the disk fails. Also the errors of
            writing ledgers. The database is not there then, and what was there before is unchanged.
    """
    old = await check_name(client, new.name, replaces=new.replaces)
    new_identity = client.host.entropy.stream("sql.database").randbytes(16)
    info = DatabaseInfo(
        new.name,
        new_identity,
        f"database.{new.name}.{new_identity[:4].hex()}",
        client.host.clock.wall_us() // 1000,
        new.lease_ms,
        administrator=new.administrator,
    )
    old_epoch = 0 if old is None else (await logs.head(old.log)).epoch
    state = await _adopt(client.host, path, identity, new_identity, old_epoch)
    purpose = log_purpose(info)
    logs = logs.acting_for(purpose)
    await logs.create(info.log, new.settings, purpose=purpose, key_id=new.key_id, first_offset=state.position, epoch=state.epoch)
    try:
        if state.position:
            await _write_snapshot(client, logs, info, path, state)
        await _register(client, info, old)
    except BaseException as error:
        if not isinstance(error, SqlError) or error.sqlstate != "08007":  # The database may be there.
            await shielded(_delete_log(logs, info.log))
        raise
    return info


async def _adopt(host: Host, path: str, identity: bytes, new_identity: bytes, old_epoch: int) -> WorkFileState:
    """Make the file one of the new database."""
    worker = host.new_worker("sql-restore")

    def change() -> WorkFileState:
        file = WorkFile(host, path, identity)
        try:
            epoch = max(file.open().epoch, old_epoch) + EPOCHS_APART
            if epoch >= _EPOCH_MAX:
                raise ArgumentError(f"the database has had {epoch} epochs, which is the limit: export it, and import it as a new one")
            file.become(new_identity, epoch)
            return file.close()
        except BaseException:
            file.release()
            raise

    try:
        return await on_disk(worker, change)
    finally:
        await shielded(worker.close())


async def _write_snapshot(client: Client, logs: Logs, info: DatabaseInfo, path: str, state: WorkFileState) -> None:
    door = logs.snapshots(info.log)
    log_id, compression = await door.header_fields()
    worker = client.host.new_worker("sql-restore")
    try:
        file = await on_disk(worker, lambda: client.host.disk.open(path, readonly=True))
        with closing(file):
            header = SnapshotHeader(
                door.new_id(),
                log_id,
                state.position,
                state.epoch,
                client.host.clock.wall_us() // 1000,
                MACHINE,
                CONTENT,
                info.identity.hex(),
                "restore",
                compression,
                {},
            )
            page_size = int.from_bytes(await on_disk(worker, file.pread, 2, SQLITE_PAGE_SIZE_AT), "big")
            header = replace(header, facts={"page_size": page_size if page_size > 1 else 65536})
            async with await door.writer(header) as writer:
                offset, size = 0, file.size()
                while offset < size:
                    content = await on_disk(worker, file.pread, CHUNK_BYTES, offset)
                    await writer.append(content)
                    offset += len(content)
                snapshot = await writer.finish()
    finally:
        await shielded(worker.close())
    # Read it from the bookies once, as every snapshot before it is listed: nothing else has the content.
    await door.verify(snapshot)
    if not await door.publish(snapshot, None):
        raise LogReplaced(f"log {info.log} got another snapshot while the database was made; try again")


async def _register(client: Client, info: DatabaseInfo, old: DatabaseInfo | None) -> None:
    if old is not None:
        await replace_database(client, info, old.identity)
        return
    path = own_paths.database_path(client.metadata.own_root, info.name)
    try:
        await create_identified(client.metadata.tree, path, encode_info(info), client.host)
    except NodeExists:
        # The creation may have been applied, the connection lost, and the creation repeated.
        if (await read_info(client, info.name)).identity != info.identity:
            raise SqlError("42P04", f'database "{info.name}" was created by others meanwhile, and is kept') from None


async def _delete_log(logs: Logs, name: str) -> None:
    try:
        await logs.delete(name, force=True)
    except TriplicateError as error:
        logs.client.host.trace("sql.log_not_deleted", log=name, error=repr(error))
