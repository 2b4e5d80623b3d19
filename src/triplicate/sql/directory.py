"""Which databases there are: one metadata node each, and the log that belongs to it."""

from __future__ import annotations

import json
import os.path
from dataclasses import dataclass, replace
from pathlib import Path

from triplicate.client import Client
from triplicate.config.log import LogSettings
from triplicate.errors import FormatError, NodeExists, NoNode, SqlError
from triplicate.log import Logs, Purpose, PurposeKind
from triplicate.metadata import Tree, own
from triplicate.replica import Candidate, candidates_of, leader_of

FORMAT = 1
FILE_NAME = "main.db"


@dataclass(frozen=True, slots=True)
class DatabaseInfo:
    """One database."""

    name: str
    identity: bytes
    """16 bytes; a database created again under the same name has another."""
    log: str
    """Name of its log."""
    created_ms: int
    """Milliseconds since the epoch, UTC."""
    leader: str | None = None
    """Id of the node that leads it now."""
    nodes: tuple[Candidate, ...] = ()
    """The nodes that hold a copy now, with their addresses and positions."""


def encode_info(info: DatabaseInfo) -> bytes:
    fields = {"v": FORMAT, "name": info.name, "id": info.identity.hex(), "log": info.log, "created": info.created_ms}
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_info(data: bytes) -> DatabaseInfo:
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise ValueError(f"version {fields['v']}; this release knows {FORMAT}")
        return DatabaseInfo(str(fields["name"]), bytes.fromhex(fields["id"]), str(fields["log"]), int(fields["created"]))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"a database's node cannot be read: {error}") from error


async def create_database(client: Client, name: str, settings: LogSettings | None = None, *, logs: Logs | None = None) -> DatabaseInfo:
    """Make an empty database; nodes begin to host it at once.

    Args:
        settings: of its log: quorums, roll size.

    Raises:
        SqlError: 42P04, the name is taken. ArgumentError: it cannot name a database.
    """
    path = own.database_path(client.metadata.own_root, name)
    tree: Tree = client.metadata.tree
    if await tree.exists(path) is not None:
        raise _taken(name)
    identity = client.host.entropy.stream("sql.database").randbytes(16)
    info = DatabaseInfo(name, identity, f"database.{name}.{identity[:4].hex()}", client.host.clock.wall_us() // 1000)
    purpose = log_purpose(info)
    logs = (logs or Logs(client)).acting_for(purpose)
    await logs.create(info.log, settings, purpose=purpose)
    try:
        await tree.create(path, encode_info(info), parents=True)
    except NodeExists:
        if (await _read(tree, path)) == info:
            return info  # The connection was lost after our own creation had been applied, and it was tried again below us.
        await logs.delete(info.log)
        raise _taken(name) from None
    return info


def log_purpose(info: DatabaseInfo) -> Purpose:
    """What the head of a database's log says it belongs to: the name under which the database was created, which its log is named after."""
    return Purpose(PurposeKind.DATABASE, info.log.removeprefix("database.").rpartition(".")[0])


def _taken(name: str) -> SqlError:
    return SqlError("42P04", f'database "{name}" already exists')


async def _read(tree: Tree, path: str) -> DatabaseInfo | None:
    try:
        data, _ = await tree.get(path)
    except NoNode:
        return None
    return decode_info(data) if data else None


async def database_names(client: Client) -> list[str]:
    """Names of all databases, sorted."""
    try:
        names, _ = await client.metadata.tree.children(own.databases_path(client.metadata.own_root))
    except NoNode:
        return []
    return sorted(names)


async def read_info(client: Client, name: str) -> DatabaseInfo:
    """What is fixed about a database: its identity and its log.

    Raises:
        SqlError: 3D000, there is none.
    """
    found = await _read(client.metadata.tree, own.database_path(client.metadata.own_root, name))
    if found is None:
        raise SqlError("3D000", f'database "{name}" does not exist', hint="triplicate database list shows those that do.")
    return found


async def database_info(client: Client, name: str) -> DatabaseInfo:
    """A database with its leader and the nodes that hold copies.

    Raises:
        SqlError: 3D000, there is none.
    """
    info = await read_info(client, name)
    path = own.database_path(client.metadata.own_root, name)
    tree: Tree = client.metadata.tree
    leader = await leader_of(tree, path)
    return replace(info, leader=None if leader is None else leader.node_id, nodes=tuple(await candidates_of(tree, path)))


def database_file(directory: str | Path, name: str) -> Path:
    """Where a node with this directory keeps its copy of a database."""
    return Path(os.path.join(directory, "databases", name, FILE_NAME))
