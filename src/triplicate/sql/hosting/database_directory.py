"""The list of databases: a metadata node for each, with the name of its log."""

from __future__ import annotations

import hashlib
import json
import os.path
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from triplicate.client import Client
from triplicate.config.log_settings import LogSettings
from triplicate.errors import ArgumentError, BadVersion, FormatError, NodeExists, NoNode, SqlError
from triplicate.log import Logs, Purpose, PurposeKind
from triplicate.metadata import IdentifiedNode, Tree, TreeOperation, own_paths, read_identified
from triplicate.replica import (
    EVERYWHERE,
    Candidate,
    Placement,
    Role,
    candidates_of,
    check_lease,
    create_with_log,
    decode_registration,
    leader_of,
    names_beneath,
)
from triplicate.runtime import deadline_after, sleep
from triplicate.security import PASSWORD_BYTES_MAX, SALT_BYTES, ScramVerifier
from triplicate.sql.core.role_login import RoleLogin
from triplicate.sql.storage.local_copies import FILE_NAME

FORMAT = 2
FORMAT_OF_SECURED = 3
"""Of a database with an administrator. Earlier releases, which would serve it to everybody, refuse to read it."""
FORMAT_OF_PLACED = 4
"""Of a database that has a placement of its own. Earlier releases, which would have a copy on every node, refuse to read it."""
ROLE_NAME_BYTES_MAX = 63
"""PostgreSQL's limit for names."""
ATTEMPTS = 10
LEASE_S = 0.5
"""Default lease of a database, in seconds: how long its leader answers reads on its own."""
LEADER_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Administrator:
    """The role that may do everything in a database. It is stored outside of the database, so that it can be set while none can log in."""

    name: str
    verifier: str = field(repr=False)
    """In the form of `ScramVerifier.text`."""

    @classmethod
    def of_password(cls, client: Client, name: str, password: str) -> Administrator:
        """An administrator with this password. Takes milliseconds.

        Raises:
            ArgumentError: the name or the password is empty or too long.
        """
        if not name or len(name.encode()) > ROLE_NAME_BYTES_MAX or not name.isprintable():
            raise ArgumentError(f"a role has a name of 1 to {ROLE_NAME_BYTES_MAX} bytes of printable characters")
        if not password or len(password.encode()) > PASSWORD_BYTES_MAX or "\0" in password:
            raise ArgumentError(f"a password has 1 to {PASSWORD_BYTES_MAX} bytes, and no NUL among them")
        salt = client.host.entropy.stream("sql.salt").randbytes(SALT_BYTES)
        return cls(name, ScramVerifier.of_password(password, salt).text)

    @property
    def login(self) -> RoleLogin:
        return RoleLogin(self.name, self.verifier, is_administrator=True)


@dataclass(frozen=True, slots=True)
class DatabaseInfo:
    """One database."""

    name: str
    identity: bytes
    """16 bytes. A database that is created again under the same name has another identity."""
    log: str
    """Name of its log."""
    created_ms: int
    """Milliseconds since the epoch, UTC."""
    lease_ms: int = 0
    """How long after the sending of an acknowledged append the leader answers reads on its own, and how long each successor waits.
    0: every read is confirmed by the log. Never changes."""
    leader: str | None = None
    """Id of the node that leads it now."""
    nodes: tuple[Candidate, ...] = ()
    """The nodes that hold a copy now, with their addresses and positions."""
    administrator: Administrator | None = None
    has_tls: bool = False
    """Whether one of the nodes offers or requires TLS."""
    placement: Placement = EVERYWHERE
    """The nodes that are to have copies."""

    @property
    def is_led(self) -> bool:
        """Whether a node leads it and has reported the end of its take-over. Nodes of earlier releases report no role."""
        return any(one.node_id == self.leader and one.role in ("", Role.LEADER.value) for one in self.nodes)


def encode_info(info: DatabaseInfo) -> bytes:
    is_placed = info.placement != EVERYWHERE
    fields: dict[str, object] = {
        "v": FORMAT_OF_PLACED if is_placed else FORMAT if info.administrator is None else FORMAT_OF_SECURED,
        "name": info.name,
        "id": info.identity.hex(),
        "log": info.log,
        "created": info.created_ms,
        "lease": info.lease_ms,
    }
    if info.administrator is not None:
        fields["administrator"] = {"name": info.administrator.name, "verifier": info.administrator.verifier}
    if is_placed:
        fields["placement"] = placement_fields(info.placement)
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def placement_fields(placement: Placement) -> dict[str, object]:
    """A placement as a part of a database's entry."""
    return {
        "copies": placement.copies,
        "nodes": list(placement.nodes),
        "readers": list(placement.readers),
        "weight": placement.weight,
        "preferred": placement.preferred,
    }


def placement_of(fields: dict[str, Any]) -> Placement:
    """Raises ValueError, KeyError, TypeError."""
    copies = None if fields["copies"] is None else int(fields["copies"])
    nodes, readers = (tuple(sorted(map(str, fields[name]))) for name in ("nodes", "readers"))
    return Placement(copies, nodes, readers, float(fields["weight"]), str(fields["preferred"]))


def decode_info(data: bytes) -> DatabaseInfo:
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        version = fields["v"]
        if version not in (1, FORMAT, FORMAT_OF_SECURED, FORMAT_OF_PLACED):
            raise ValueError(f"version {version}; this release knows versions up to {FORMAT_OF_PLACED}")
        # Nodes of the release that writes version 1 have no leases and would not wait for one.
        lease_ms = 0 if version == 1 else int(fields["lease"])
        administrator = None
        if version == FORMAT_OF_SECURED or (version == FORMAT_OF_PLACED and "administrator" in fields):
            administrator = Administrator(str(fields["administrator"]["name"]), str(fields["administrator"]["verifier"]))
        name, identity, log = str(fields["name"]), bytes.fromhex(fields["id"]), str(fields["log"])
        placement = placement_of(fields["placement"]) if version == FORMAT_OF_PLACED else EVERYWHERE
        return DatabaseInfo(name, identity, log, int(fields["created"]), lease_ms, administrator=administrator, placement=placement)
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"a database's node cannot be read: {error}") from error


async def create_database(
    client: Client,
    name: str,
    settings: LogSettings | None = None,
    *,
    logs: Logs | None = None,
    lease_s: float = LEASE_S,
    key_id: str = "",
    administrator: Administrator | None = None,
    placement: Placement = EVERYWHERE,
) -> DatabaseInfo:
    """Make an empty database; nodes begin to host it at once.

    Args:
        settings: of its log, such as quorums and roll size.
        lease_s: how long, in seconds, the leader answers reads on its own after an append; each successor waits as long. At most 60 s. 0
            for no lease: the log confirms every read.
        key_id: the key under which its log and its snapshots are encrypted, which `logs` has; empty for none. The nodes need it too.
        administrator: may log in where nodes authenticate their clients; without one, nobody may.
        placement: the expected copies. The nodes of the cluster choose those that have them.

    Raises:
        SqlError: 42P04, the name is in use. ArgumentError: the name or the lease is not valid, or `settings` has retention, which the
        snapshots of a database decide.
    """
    check_lease(lease_s)
    path = own_paths.database_path(client.metadata.own_root, name)
    identity = client.host.entropy.stream("sql.database").randbytes(16)
    info = DatabaseInfo(
        name,
        identity,
        f"database.{name}.{identity[:4].hex()}",
        client.host.clock.wall_us() // 1000,
        round(lease_s * 1000),
        administrator=administrator,
        placement=placement,
    )
    is_made = await create_with_log(
        client.metadata.tree,
        path,
        encode_info(info),
        lambda data: decode_info(data).identity == identity,
        logs or Logs(client),
        info.log,
        settings,
        purpose=log_purpose(info),
        key_id=key_id,
    )
    if not is_made:
        raise SqlError("42P04", f'database "{name}" already exists')
    return info


async def set_administrator(client: Client, name: str, administrator: Administrator) -> DatabaseInfo:
    """Set the administrator of a database, or replace it. Its nodes use it at once.

    Raises:
        SqlError: 3D000, there is none; 40001, others change it all the time.
    """
    meant: bytes | None = None
    for _ in range(ATTEMPTS):
        stored = await read_stored(client, name, meant)
        meant, info = stored.info.identity, replace(stored.info, administrator=administrator)
        try:
            await client.metadata.tree.multi(stored.change(info))
        except (BadVersion, NoNode, NodeExists):
            continue
        return info
    raise SqlError("40001", f'the entry of database "{name}" in the metadata was changed at the same time; try again')


@dataclass(frozen=True, slots=True)
class DatabaseEntry:
    """The entry of a database, as it is stored."""

    info: DatabaseInfo
    node: IdentifiedNode

    def change(self, info: DatabaseInfo) -> list[TreeOperation]:
        """The operations of a change. They fail with BadVersion, NoNode or NodeExists if the entry is not the same any more."""
        return self.node.change(encode_info(info))


async def read_stored(client: Client, name: str, meant: bytes | None = None) -> DatabaseEntry:
    """The entry of a database, for a change of it.

    Args:
        meant: the identity of the database for which the change was begun; None when it begins.

    Raises:
        SqlError: 3D000, there is none of this name and identity.
    """
    try:
        node = await read_identified(client.metadata.tree, own_paths.database_path(client.metadata.own_root, name))
    except NoNode:
        raise _no_such_database(name) from None
    if not node.data:
        raise _no_such_database(name)
    stored = DatabaseEntry(decode_info(node.data), node)
    if meant not in (None, stored.info.identity):
        raise SqlError("3D000", f'database "{name}" was dropped meanwhile, and another one of this name was created, which is kept')
    return stored


def _no_such_database(name: str) -> SqlError:
    return SqlError("3D000", f'database "{name}" does not exist', hint="triplicate database list shows those that do.")


def login_secret(client: Client) -> bytes:
    """A secret of the cluster that its SQL clients do not know, the same on every node. It hides from them which roles exist."""
    return hashlib.sha256(b"logins of " + client.metadata.own_root.encode()).digest()


def log_purpose(info: DatabaseInfo) -> Purpose:
    """The purpose in the head of a database's log. It has the name under which the database was created, as the log's own name does."""
    return Purpose(PurposeKind.DATABASE, info.log.removeprefix("database.").rpartition(".")[0])


async def _read(tree: Tree, path: str) -> DatabaseInfo | None:
    try:
        data, _ = await tree.get(path)
    except NoNode:
        return None
    return decode_info(data) if data else None


async def database_names(client: Client) -> list[str]:
    """Names of all databases, sorted."""
    return await names_beneath(client.metadata.tree, own_paths.databases_path(client.metadata.own_root))


async def read_info(client: Client, name: str) -> DatabaseInfo:
    """The identity of a database and its log, which never change, and its administrator.

    Raises:
        SqlError: 3D000, there is none.
    """
    found = await find_info(client, name)
    if found is None:
        raise _no_such_database(name)
    return found


async def find_info(client: Client, name: str) -> DatabaseInfo | None:
    """As `read_info`; None if there is none."""
    return await _read(client.metadata.tree, own_paths.database_path(client.metadata.own_root, name))


async def database_info(client: Client, name: str) -> DatabaseInfo:
    """A database with its leader and the nodes that hold copies.

    Raises:
        SqlError: 3D000, there is none.
    """
    info = await read_info(client, name)
    path = own_paths.database_path(client.metadata.own_root, name)
    tree: Tree = client.metadata.tree
    leader = await leader_of(tree, path)
    nodes = tuple(await candidates_of(tree, path))
    has_tls = await _any_offers_tls(client, nodes)
    return replace(info, leader=None if leader is None else leader.node_id, nodes=nodes, has_tls=has_tls)


async def _any_offers_tls(client: Client, nodes: Sequence[Candidate]) -> bool:
    for one in nodes:
        try:
            data, _ = await client.metadata.tree.get(own_paths.node_path(client.metadata.own_root, one.node_id))
        except NoNode:
            continue  # It leaves just now.
        if decode_registration(data).has_tls:
            return True
    return False


async def wait_for_leader(client: Client, name: str, limit_s: float) -> DatabaseInfo:
    """A database with its leader and its nodes, as soon as a node leads it, and after `limit_s` seconds at the latest.

    An election and a take-over are waited for. Without a running node in the cluster there is nothing to wait for.

    Raises:
        SqlError: 3D000, there is none.
    """
    clock = client.host.clock
    deadline_s = deadline_after(clock, limit_s)
    while True:
        info = await database_info(client, name)
        if info.is_led or clock.monotonic() >= deadline_s or not await _any_node_runs(client):
            return info
        await sleep(clock, LEADER_POLL_S)


async def _any_node_runs(client: Client) -> bool:
    return bool(await names_beneath(client.metadata.tree, own_paths.nodes_path(client.metadata.own_root)))


def database_file(directory: str | Path, name: str) -> Path:
    """The path of the copy of a database on a node with this directory."""
    return Path(os.path.join(directory, "databases", name, FILE_NAME))
