"""The list of key-value stores: a metadata node for each, with the name of its log.

``/triplicate/<INSTANCEID>/stores/<name>`` is JSON with ``v`` (1), ``name``, ``id``, ``log``, ``created`` and ``lease`` (both ms), and
``dropping`` (true) while the store is dropped. Beneath it are the candidates and the leader of the election.

A drop marks the node first. The nodes then end the store and delete their copies. Then its log is deleted, and at last the node. A drop
that was interrupted is finished by another drop.
"""

from __future__ import annotations

import json
import os.path
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from triplicate.client import Client
from triplicate.config.log_settings import LogSettings
from triplicate.errors import (
    BadVersion,
    FormatError,
    NodeExists,
    NoNode,
    NoSuchLog,
    NoSuchStore,
    NotEmpty,
    StoreExists,
    StoreUnavailable,
)
from triplicate.kv.storage.copy_folder import ROCKS_FILE, store_folder
from triplicate.log import Logs, Purpose, PurposeKind
from triplicate.metadata import IdentifiedNode, Tree, own_paths, read_identified
from triplicate.replica import (
    EVERYWHERE,
    Candidate,
    Placement,
    Role,
    candidates_of,
    check_lease,
    create_with_log,
    deletions_of,
    leader_of,
    names_beneath,
)
from triplicate.runtime import sleep

FORMAT = 1
LEASE_S = 0.75
"""Default lease of a store, in seconds: how long its leader answers reads on its own."""
IDENTITY_SIZE = 16
NODES_LEAVE_S = 5.0
"""Time that a drop waits for the nodes to end the store, seconds. Nodes that do not answer do not delay it longer."""
POLL_S = 0.1
ATTEMPTS = 30


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """One store."""

    name: str
    identity: bytes
    """16 bytes. A store that is created again under the same name has another identity."""
    log: str
    """Name of its log."""
    created_ms: int
    """Milliseconds since the epoch, UTC."""
    lease_ms: int
    """See `replica.core.lease`; 0 for none. Never changes."""
    is_dropping: bool = False
    leader: str | None = None
    """Id of the node that leads it now."""
    nodes: Sequence[Candidate] = ()
    """The nodes that hold a copy now, with their addresses and positions."""

    @property
    def placement(self) -> Placement:
        """Every node has a copy."""
        return EVERYWHERE

    @property
    def is_led(self) -> bool:
        """Whether a node leads it and has reported the end of its take-over."""
        return any(one.node_id == self.leader and one.role == Role.LEADER.value for one in self.nodes)


class StoredInfo(NamedTuple):
    """A store, and its node as it was read."""

    info: StoreInfo
    node: IdentifiedNode


def encode_info(info: StoreInfo) -> bytes:
    fields: dict[str, object] = {
        "v": FORMAT,
        "name": info.name,
        "id": info.identity.hex(),
        "log": info.log,
        "created": info.created_ms,
        "lease": info.lease_ms,
    }
    if info.is_dropping:
        fields["dropping"] = True
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_info(data: bytes) -> StoreInfo:
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise ValueError(f"version {fields['v']}; this release knows version {FORMAT}")
        name, identity, log = str(fields["name"]), bytes.fromhex(fields["id"]), str(fields["log"])
        if len(identity) != IDENTITY_SIZE:
            raise ValueError(f"an id of {len(identity)} bytes")
        return StoreInfo(name, identity, log, int(fields["created"]), int(fields["lease"]), bool(fields.get("dropping", False)))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"a key-value store's node cannot be read: {error}") from error


def log_purpose(info: StoreInfo) -> Purpose:
    """The purpose in the head of a store's log."""
    return Purpose(PurposeKind.KEY_VALUE, info.name)


async def create_store(
    client: Client,
    name: str,
    settings: LogSettings | None = None,
    *,
    logs: Logs | None = None,
    lease_s: float = LEASE_S,
    key_id: str = "",
) -> StoreInfo:
    """Make an empty store; nodes begin to host it at once.

    Args:
        settings: of its log, such as quorums and roll size.
        lease_s: how long, in seconds, the leader answers reads on its own after an append; each successor waits as long. At most 60 s. 0
            for no lease: the log confirms every read.
        key_id: the key under which its log and its snapshots are encrypted, which `logs` has; empty for none. The nodes need it too.

    Raises:
        StoreExists. ArgumentError: the name or the lease is not valid, or `settings` has retention, which snapshots decide.
    """
    check_lease(lease_s)
    path = own_paths.store_path(client.metadata.own_root, name)
    identity = client.host.entropy.stream("kv.store").randbytes(IDENTITY_SIZE)
    created_ms = client.host.clock.wall_us() // 1000
    info = StoreInfo(name, identity, f"store.{name}.{identity[:4].hex()}", created_ms, round(lease_s * 1000))
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
        raise StoreExists(f"store {name!r} exists already; choose another name, or drop it: triplicate kv drop {name}")
    return info


async def store_names(client: Client) -> list[str]:
    """Names of all stores, sorted."""
    return await names_beneath(client.metadata.tree, own_paths.stores_path(client.metadata.own_root))


async def read_store(client: Client, name: str) -> StoreInfo:
    """The identity of a store and its log. Raises NoSuchStore."""
    found = await _stored(client.metadata.tree, own_paths.store_path(client.metadata.own_root, name))
    if found is None:
        raise missing_store(name)
    return found.info


async def store_info(client: Client, name: str) -> StoreInfo:
    """A store with its leader and the nodes that hold copies. Raises NoSuchStore."""
    info = await read_store(client, name)
    path = own_paths.store_path(client.metadata.own_root, name)
    leader = await leader_of(client.metadata.tree, path)
    nodes = await candidates_of(client.metadata.tree, path)
    return replace(info, leader=None if leader is None else leader.node_id, nodes=nodes)


async def drop_store(client: Client, name: str, logs: Logs | None = None) -> StoreInfo:
    """Delete a store with its log and all copies, for good. A drop that was interrupted is finished.

    Raises:
        NoSuchStore. StoreUnavailable: others change it all the time.
    """
    path = own_paths.store_path(client.metadata.own_root, name)
    tree: Tree = client.metadata.tree
    info = await _mark_dropping(tree, path, name)
    clock = client.host.clock
    deadline_s = clock.monotonic() + NODES_LEAVE_S
    while await candidates_of(tree, path) and clock.monotonic() < deadline_s:
        await sleep(clock, POLL_S)
    try:
        await (logs or Logs(client)).acting_for(log_purpose(info)).delete(info.log, force=True)
    except NoSuchLog:
        client.host.trace("kv.log_already_deleted", store=name, log=info.log)
    for _ in range(ATTEMPTS):
        found = await _stored(tree, path)
        if found is None or found.info.identity != info.identity:
            return info
        try:
            await tree.multi(await deletions_of(tree, found.node))
        except (NotEmpty, NoNode, NodeExists, BadVersion):
            await sleep(clock, POLL_S)  # Candidates come and go.
    raise StoreUnavailable(f"store {name!r} has no log any more, and its node in the metadata is changed all the time; drop it again")


class StoreDirectory:
    """Implements `replica.ReplicaDirectory` for stores.

    Args:
        folder: the directory of this node.
    """

    kind = "store"

    def __init__(self, client: Client, folder: str) -> None:
        self._client = client
        self._folder = folder
        self._dropping: set[bytes] = set()
        """Identities of the stores that were marked when they were read."""
        self.list_path = own_paths.stores_path(client.metadata.own_root)

    def entry_path(self, name: str) -> str:
        return own_paths.store_path(self._client.metadata.own_root, name)

    def copy_file(self, name: str) -> str:
        return os.path.join(store_folder(self._folder, name), ROCKS_FILE)

    async def names(self) -> list[str]:
        return await store_names(self._client)

    async def read(self, name: str) -> StoreInfo | None:
        """A store, unless it is being dropped."""
        found = await _stored(self._client.metadata.tree, self.entry_path(name))
        if found is not None and found.info.is_dropping:
            self._dropping.add(found.info.identity)
            return None
        return None if found is None else found.info

    async def is_dropped(self, info: StoreInfo) -> bool:
        """Whether this node has seen the mark of the drop. Otherwise the entry may be missing since the metadata were lost and restored."""
        await self.read(info.name)
        return info.identity in self._dropping


async def _mark_dropping(tree: Tree, path: str, name: str) -> StoreInfo:
    meant: bytes | None = None
    for _ in range(ATTEMPTS):
        found = await _stored(tree, path)
        if found is None or meant not in (None, found.info.identity):
            break  # Another store that has the name by now is kept.
        meant, dropping = found.info.identity, replace(found.info, is_dropping=True)
        try:
            await tree.multi(found.node.change(encode_info(dropping)))
        except (NoNode, NodeExists, BadVersion):
            continue
        return dropping
    raise missing_store(name)


async def _stored(tree: Tree, path: str) -> StoredInfo | None:
    try:
        node = await read_identified(tree, path)
    except NoNode:
        return None
    return StoredInfo(decode_info(node.data), node) if node.data else None


def missing_store(name: str) -> NoSuchStore:
    """The error for a name that no store has."""
    return NoSuchStore(f"there is no store {name!r}; triplicate kv list shows those that exist")
