"""The records of the backups of a database, in the metadata: ``/triplicate/<INSTANCEID>/backups/<database id>``.

They have the database's identity, so they stay with it when it is renamed, or dropped and undeleted. They go with its log.
"""

from __future__ import annotations

from triplicate.client import Client
from triplicate.errors import BadVersion, NodeExists, NoNode, SqlError
from triplicate.metadata import Tree, own_paths
from triplicate.sql.backup.core.backup_records import BackupRecord, decode_records, encode_records, with_record

ATTEMPTS = 10
"""How often a record is written again when others have written one meanwhile."""


async def recorded_backups(client: Client, identity: bytes) -> tuple[BackupRecord, ...]:
    """The newest backups of a database, in the order of their making.

    Raises:
        FormatError: a later release has written them.
    """
    try:
        data, _ = await client.metadata.tree.get(own_paths.backups_path(client.metadata.own_root, identity))
    except NoNode:
        return ()
    return decode_records(data) if data else ()


async def record_backup(client: Client, identity: bytes, record: BackupRecord) -> None:
    """Add a record to those of a database.

    Raises:
        SqlError: 40001, others add records all the time. FormatError: as `recorded_backups`.
    """
    tree: Tree = client.metadata.tree
    path = own_paths.backups_path(client.metadata.own_root, identity)
    for _ in range(ATTEMPTS):
        try:
            data, stat = await tree.get(path)
            records = decode_records(data) if data else ()
            await tree.set(path, encode_records(with_record(records, record)), stat.version)
        except NoNode:
            try:
                await tree.create(path, encode_records((record,)), parents=True)
            except NodeExists:
                continue
        except BadVersion:
            continue
        return
    raise SqlError("40001", "the records of the database's backups were changed at the same time; try again")


async def forget_backups(client: Client, identity: bytes) -> None:
    """Delete the records of a database. Idempotent."""
    try:
        await client.metadata.tree.delete(own_paths.backups_path(client.metadata.own_root, identity))
    except NoNode:
        return
