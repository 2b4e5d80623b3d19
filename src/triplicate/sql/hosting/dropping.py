"""Dropping, undeleting and renaming databases, and deleting the logs of those that were dropped.

A drop deletes the database's node, with the candidates and the leader's node beneath it, and writes a tombstone in the same
transaction: ``/triplicate/<INSTANCEID>/dropped/<database id>``, JSON with ``v`` (1), ``state`` (``dropped``, or ``purging`` once the log is
being deleted) and ``record``, the content of the deleted node. The log stays until the tombstone is old enough, by the metadata
store's own clock; until then an undelete writes the node again.

Identities of nodes (`metadata.node_identity`) distinguish a database from the next one of its name, and from itself after a rename and
back. A tombstone has the field ``drop``: the name of an empty node, ``/triplicate/<INSTANCEID>/drops/<drop>``, that exists as long as it,
and distinguishes two drops of one database. Tombstones of earlier releases have none.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from triplicate.client import Client
from triplicate.errors import (
    BadVersion,
    ConnectionLost,
    FormatError,
    NodeExists,
    NoNode,
    NoSuchLog,
    NotEmpty,
    SessionExpired,
    SqlError,
    TriplicateError,
)
from triplicate.log import Logs
from triplicate.metadata import (
    CheckVersion,
    CreateNode,
    DeleteNode,
    SetData,
    Tree,
    TreeOperation,
    creation,
    ensure_node,
    new_identity,
    own_paths,
    store_time_ms,
)
from triplicate.replica import deletions_of, names_beneath
from triplicate.runtime import Backoff, Host, sleep
from triplicate.sql.hosting.database_directory import DatabaseEntry, DatabaseInfo, decode_info, encode_info, log_purpose, read_stored
from triplicate.sql.hosting.recorded_backups import forget_backups

FORMAT = 1
DROPPED = "dropped"
PURGING = "purging"
ATTEMPTS = 30
RETRY_FIRST_S = 0.01
RETRY_LONGEST_S = 0.5


@dataclass(frozen=True, slots=True)
class DroppedDatabase:
    """A database that was dropped and whose log is still there."""

    info: DatabaseInfo
    record: str
    """The content of its node."""
    dropped_ms: int
    """Time of the drop by the metadata store's clock, in milliseconds since the epoch."""
    version: int
    """Version of the tombstone."""
    state: str = DROPPED
    drop: str = ""
    """Identity of the drop; empty if an earlier release has dropped it."""


def encode_tombstone(record: str, state: str, drop: str = "") -> bytes:
    fields = {"v": FORMAT, "state": state, "record": record} | ({"drop": drop} if drop else {})
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_tombstone(data: bytes, dropped_ms: int, version: int) -> DroppedDatabase:
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise ValueError(f"version {fields['v']}; this release knows {FORMAT}")
        record, state, drop = str(fields["record"]), str(fields["state"]), str(fields.get("drop", ""))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"the tombstone of a database cannot be read: {error}") from error
    return DroppedDatabase(decode_info(record.encode()), record, dropped_ms, version, state, drop)


async def drop_database(client: Client, name: str) -> DatabaseInfo:
    """Drop a database. Its name is free at once, and nodes stop hosting it. `undelete_database` restores it while its log is kept.

    Raises:
        SqlError: 3D000, there is none.
    """
    meant: bytes | None = None

    async def attempt() -> DatabaseInfo:
        nonlocal meant
        found = await read_stored(client, name, meant)
        meant = found.info.identity
        await client.metadata.tree.multi(await _drop(client, found))
        return found.info

    return await _repeated(client.host, attempt)


async def replace_database(client: Client, info: DatabaseInfo, meant: bytes) -> DatabaseInfo:
    """Drop the database that has the name of `info`, and put `info` in its place, in one transaction.

    The log of the dropped one stays as after any drop. It can be undeleted once the name is free again.

    Args:
        meant: identity of the database that is dropped.

    Raises:
        SqlError: 3D000, there is none of this name and identity.
    """

    async def attempt() -> DatabaseInfo:
        found = await read_stored(client, info.name)
        if found.info.identity == info.identity:
            return info  # An earlier attempt was applied.
        if found.info.identity != meant:
            raise SqlError("3D000", f'database "{info.name}" was replaced by another one meanwhile, which is kept')
        created = creation(found.node.path, encode_info(info), new_identity(client.host))
        await client.metadata.tree.multi([*await _drop(client, found), *created])
        return info

    return await _repeated(client.host, attempt)


async def rename_database(client: Client, name: str, new_name: str) -> DatabaseInfo:
    """Give a database another name. Its identity, its log and its content stay; sessions under the old name are ended.

    Raises:
        SqlError: 3D000, there is none; 42P04, the new name is in use. ArgumentError: it is no valid name.
    """
    tree, new_path = client.metadata.tree, own_paths.database_path(client.metadata.own_root, new_name)
    meant: bytes | None = None

    async def attempt() -> DatabaseInfo:
        nonlocal meant
        found = await read_stored(client, name, meant)
        meant, renamed = found.info.identity, replace(found.info, name=new_name)
        await _require_free(tree, new_path, new_name)
        created = creation(new_path, encode_info(renamed), new_identity(client.host))
        await tree.multi([*created, *await deletions_of(tree, found.node)])
        return renamed

    return await _repeated(client.host, attempt)


async def dropped_databases(client: Client) -> list[DroppedDatabase]:
    """The databases that were dropped and whose logs are kept, the last drop first."""
    tree: Tree = client.metadata.tree
    folder = own_paths.dropped_path(client.metadata.own_root)
    found = []
    for name in await names_beneath(tree, folder):
        try:
            data, stat = await tree.get(f"{folder}/{name}")
        except NoNode:
            continue
        found.append(decode_tombstone(data, stat.ctime_ms, stat.version))
    return sorted(found, key=lambda one: one.dropped_ms, reverse=True)


async def undelete_database(client: Client, name: str) -> DatabaseInfo:
    """Restore the database of this name that was dropped last. Nodes build their copies from its log.

    Raises:
        SqlError: 3D000, none of this name was dropped, or its log is being deleted; 42P04, the name is in use.
    """
    root = client.metadata.own_root
    path = own_paths.database_path(root, name)
    tree: Tree = client.metadata.tree

    async def attempt() -> DatabaseInfo:
        dropped = [one for one in await dropped_databases(client) if one.info.name == name and one.state == DROPPED]
        if not dropped:
            raise SqlError(
                "3D000",
                f'no database "{name}" was dropped whose log is still there',
                hint="triplicate database list --dropped shows those that can be restored.",
            )
        await _require_free(tree, path, name)
        one = dropped[0]
        created = creation(path, one.record.encode(), new_identity(client.host))
        await tree.multi([*_end_of_tombstone(root, one), *created])
        return one.info

    return await _repeated(client.host, attempt)


async def is_dropped(client: Client, identity: bytes) -> bool:
    """Whether the database of this identity has a tombstone."""
    return await client.metadata.tree.exists(own_paths.dropped_database_path(client.metadata.own_root, identity)) is not None


async def purge_dropped(client: Client, logs: Logs, keep_s: float) -> list[DatabaseInfo]:
    """Delete the logs of databases that were dropped longer ago than `keep_s`; returns these databases. Any node may do it, at any time.

    Raises:
        SessionExpired: the metadata tree was closed. TriplicateError: a log could not be deleted. The first such error is raised after all
        other logs have been tried.
    """
    tree, root = client.metadata.tree, client.metadata.own_root
    purged, failures = list[DatabaseInfo](), list[TriplicateError]()
    dropped = await dropped_databases(client)
    now_ms = await store_time_ms(tree, root) if dropped else 0
    for one in dropped:
        if one.state != PURGING and now_ms - one.dropped_ms < keep_s * 1000:
            continue
        try:
            if one.state != PURGING:
                # From here on an undelete refuses it.
                begun = SetData(_tombstone(root, one), encode_tombstone(one.record, PURGING, one.drop), one.version)
                await tree.multi([*_checks(root, one), begun])
                one = replace(one, version=one.version + 1)
            try:
                await logs.acting_for(log_purpose(one.info)).delete(one.info.log, force=True)
            except NoSuchLog:
                client.host.trace("sql.log_already_deleted", database=one.info.name, log=one.info.log)
            await forget_backups(client, one.info.identity)
            await tree.multi(_end_of_tombstone(root, one))
        except (BadVersion, NoNode):
            continue  # Another node deletes it, or it was restored.
        except SessionExpired:
            raise
        except TriplicateError as error:
            client.host.trace("sql.log_not_deleted", database=one.info.name, log=one.info.log, error=repr(error))
            failures.append(error)
            continue
        purged.append(one.info)
    if failures:
        raise failures[0]
    return purged


async def _drop(client: Client, found: DatabaseEntry) -> list[TreeOperation]:
    """The operations that drop a database and write its tombstone."""
    tree, root = client.metadata.tree, client.metadata.own_root
    tombstone = own_paths.dropped_database_path(root, found.info.identity)
    drop = new_identity(client.host)
    for folder in own_paths.dropped_path(root), own_paths.drops_path(root):
        await ensure_node(tree, folder)
    # A tombstone beside a node is left from a drop of which the restore of an older store has undone a part.
    left = [DeleteNode(tombstone)] if await tree.exists(tombstone) is not None else []
    written = CreateNode(tombstone, encode_tombstone(found.node.data.decode(), DROPPED, drop)), CreateNode(own_paths.drop_path(root, drop))
    return [*left, *written, *await deletions_of(tree, found.node)]


def _tombstone(root: str, dropped: DroppedDatabase) -> str:
    return own_paths.dropped_database_path(root, dropped.info.identity)


def _checks(root: str, dropped: DroppedDatabase) -> list[TreeOperation]:
    """They fail with NoNode on the tombstone of another drop of the database."""
    return [CheckVersion(own_paths.drop_path(root, dropped.drop))] if dropped.drop else []


def _end_of_tombstone(root: str, dropped: DroppedDatabase) -> list[TreeOperation]:
    drop = [DeleteNode(own_paths.drop_path(root, dropped.drop))] if dropped.drop else []
    return [*drop, DeleteNode(_tombstone(root, dropped), dropped.version)]


async def _require_free(tree: Tree, path: str, name: str) -> None:
    if await tree.exists(path) is not None:
        raise SqlError("42P04", f'database "{name}" already exists')


async def _repeated(host: Host, attempt: Callable[[], Awaitable[DatabaseInfo]]) -> DatabaseInfo:
    """Make a change that is one transaction. Repeat it when candidates came or went meanwhile, and when its outcome is unknown.

    Raises:
        SqlError: the error of an attempt; 08007 when an earlier attempt lost its connection and may have been applied.
    """
    backoff = Backoff(RETRY_FIRST_S, RETRY_LONGEST_S, host.entropy.stream("sql.dropping"))
    unknown = False
    while True:
        try:
            return await attempt()
        except (NotEmpty, NoNode, NodeExists, BadVersion, ConnectionLost) as error:
            if backoff.attempts >= ATTEMPTS:
                raise
            unknown = unknown or isinstance(error, ConnectionLost)
            await sleep(host.clock, backoff.next_s())
        except SqlError as error:
            if not unknown:
                raise
            hint = "triplicate database list and triplicate database list --dropped show how it is."
            message = f"the connection to the metadata was lost, and the change may have been made: {error.message}"
            raise SqlError("08007", message, hint=hint) from error
