"""Dropping, undeleting and renaming databases, and deleting the logs of those that were dropped.

A drop deletes the database's node, with the candidates and the leader's node beneath it, and writes a tombstone in the same
transaction: ``/triplicate/<INSTANCEID>/dropped/<database id>``, JSON with ``v`` (1), ``state`` (``dropped``, or ``purging`` once the log is
being deleted) and ``record``, the content of the deleted node. The log stays until the tombstone is old enough, by the metadata
store's own clock; until then an undelete writes the node again.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

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
from triplicate.metadata import CreateNode, DeleteNode, Tree, TreeOperation, own_paths
from triplicate.replica import deletions_of, names_beneath
from triplicate.runtime import Backoff, Host, sleep
from triplicate.sql.hosting.database_directory import DatabaseInfo, decode_info, encode_info, log_purpose
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


def encode_tombstone(record: str, state: str) -> bytes:
    return json.dumps({"v": FORMAT, "state": state, "record": record}, sort_keys=True, separators=(",", ":")).encode()


def decode_tombstone(data: bytes, dropped_ms: int, version: int) -> DroppedDatabase:
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise ValueError(f"version {fields['v']}; this release knows {FORMAT}")
        record, state = str(fields["record"]), str(fields["state"])
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"the tombstone of a database cannot be read: {error}") from error
    return DroppedDatabase(decode_info(record.encode()), record, dropped_ms, version, state)


async def drop_database(client: Client, name: str) -> DatabaseInfo:
    """Drop a database. Its name is free at once, and nodes stop hosting it. `undelete_database` restores it while its log is kept.

    Raises:
        SqlError: 3D000, there is none.
    """
    root = client.metadata.own_root
    path = own_paths.database_path(root, name)
    tree: Tree = client.metadata.tree
    meant: bytes | None = None

    async def attempt() -> DatabaseInfo:
        nonlocal meant
        found = await _found(tree, path, name)
        info = found.info
        meant = meant or info.identity
        if info.identity != meant:
            raise SqlError("3D000", f'database "{name}" was dropped meanwhile, and another one of this name was created, which is kept')
        await tree.multi(await _drop(tree, root, path, found))
        return info

    return await _repeated(client.host, attempt)


async def replace_database(client: Client, info: DatabaseInfo, meant: bytes) -> DatabaseInfo:
    """Drop the database that has the name of `info`, and put `info` in its place, in one transaction.

    The log of the dropped one stays as after any drop. It can be undeleted once the name is free again.

    Args:
        meant: identity of the database that is dropped.

    Raises:
        SqlError: 3D000, there is none of this name and identity.
    """
    root, tree = client.metadata.own_root, client.metadata.tree
    path = own_paths.database_path(root, info.name)

    async def attempt() -> DatabaseInfo:
        found = await _found(tree, path, info.name)
        if found.info.identity == info.identity:
            return info  # An earlier attempt was applied.
        if found.info.identity != meant:
            raise SqlError("3D000", f'database "{info.name}" was replaced by another one meanwhile, which is kept')
        await tree.multi([*await _drop(tree, root, path, found), CreateNode(path, encode_info(info))])
        return info

    return await _repeated(client.host, attempt)


async def rename_database(client: Client, name: str, new_name: str) -> DatabaseInfo:
    """Give a database another name. Its identity, its log and its content stay; sessions under the old name are ended.

    Raises:
        SqlError: 3D000, there is none; 42P04, the new name is in use. ArgumentError: it is no valid name.
    """
    root = client.metadata.own_root
    path, new_path = own_paths.database_path(root, name), own_paths.database_path(root, new_name)
    tree: Tree = client.metadata.tree

    async def attempt() -> DatabaseInfo:
        found = await _found(tree, path, name)
        renamed = replace(found.info, name=new_name)
        await _require_free(tree, new_path, new_name)
        await tree.multi([CreateNode(new_path, encode_info(renamed)), *await deletions_of(tree, path, found.version)])
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
        await tree.multi(
            [DeleteNode(own_paths.dropped_database_path(root, one.info.identity), one.version), CreateNode(path, one.record.encode())]
        )
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
    tree: Tree = client.metadata.tree
    purged, failures = list[DatabaseInfo](), list[TriplicateError]()
    for one in await dropped_databases(client):
        path = own_paths.dropped_database_path(client.metadata.own_root, one.info.identity)
        try:
            # A write returns the store's time, so that its clock is compared with itself alone.
            stat = await tree.set(path, encode_tombstone(one.record, one.state), one.version)
            if one.state != PURGING:
                if stat.mtime_ms - stat.ctime_ms < keep_s * 1000:
                    continue
                # From here on an undelete refuses it.
                stat = await tree.set(path, encode_tombstone(one.record, PURGING), stat.version)
            try:
                await logs.acting_for(log_purpose(one.info)).delete(one.info.log, force=True)
            except NoSuchLog:
                client.host.trace("sql.log_already_deleted", database=one.info.name, log=one.info.log)
            await forget_backups(client, one.info.identity)
            await tree.delete(path, stat.version)
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


class _StoredDatabase(NamedTuple):
    """The node of a database, as it is stored, and its version."""

    record: str
    info: DatabaseInfo
    version: int


async def _found(tree: Tree, path: str, name: str) -> _StoredDatabase:
    try:
        data, stat = await tree.get(path)
    except NoNode:
        data = b""
    if not data:
        raise SqlError("3D000", f'database "{name}" does not exist', hint="triplicate database list shows those that do.")
    return _StoredDatabase(data.decode(), decode_info(data), stat.version)


async def _drop(tree: Tree, root: str, path: str, found: _StoredDatabase) -> list[TreeOperation]:
    """The operations that drop a database and write its tombstone."""
    tombstone = own_paths.dropped_database_path(root, found.info.identity)
    await _ensure(tree, own_paths.dropped_path(root))
    # A tombstone beside a node is left from a drop of which the restore of an older store has undone a part.
    left = [DeleteNode(tombstone)] if await tree.exists(tombstone) is not None else []
    return [*left, CreateNode(tombstone, encode_tombstone(found.record, DROPPED)), *await deletions_of(tree, path, found.version)]


async def _require_free(tree: Tree, path: str, name: str) -> None:
    if await tree.exists(path) is not None:
        raise SqlError("42P04", f'database "{name}" already exists')


async def _ensure(tree: Tree, path: str) -> None:
    if await tree.exists(path) is None:
        try:
            await tree.create(path, parents=True)
        except NodeExists:
            return


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
