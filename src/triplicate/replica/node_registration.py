"""A database node's name and directory, each of which one process at a time may use.

The directory holds ``LOCK``, which the process keeps locked and which has its process id, and ``NODE``, which has the directory's
identity. The name is an ephemeral node of the metadata, ``/triplicate/<INSTANCEID>/nodes/<node id>``: JSON with ``v`` (1), ``node``,
``address``, ``directory`` (the identity) and ``life``, drawn at each start; ``tls`` (true) where the server of clients has TLS;
``places`` (true) where the release knows placements of databases.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass

from triplicate.client import Client
from triplicate.errors import BadVersion, EnvironmentFault, FormatError, NodeExists, NoNode, SessionExpired, TriplicateError
from triplicate.metadata import DeleteNode, Tree, delete_of_session, multi_in_session, own_paths
from triplicate.replica.replica_entries import names_beneath
from triplicate.runtime import Backoff, Disk, Host, deadline_after, first_of, shielded, sleep, sleep_until, timeout_at

FORMAT = 1
LOCK_NAME = "LOCK"
IDENTITY_NAME = "NODE"
RETRY_FIRST_S = 0.1
RETRY_LONGEST_S = 2.0
WITHDRAW_LIMIT_S = 3.0
_IDENTITY_SIZE_MAX = 4096


class NodeDirectory:
    """The directory of one node, locked."""

    def __init__(self, host: Host, directory: str) -> None:
        self._host = host
        self._directory = directory
        self._release: Callable[[], None] | None = None

    def open(self) -> str:
        """Lock the directory, which is made if it is missing; its identity. Blocks.

        Raises:
            EnvironmentFault: another process uses it, or it cannot be used. FormatError: it was written by a later release.
        """
        disk, lock = self._host.disk, os.path.join(self._directory, LOCK_NAME)
        try:
            disk.mkdir(self._directory)
            try:
                self._release = disk.lock(lock)
            except BlockingIOError:
                raise EnvironmentFault(
                    f"{self._directory}: another node runs on this directory{self._holder(disk, lock)}: stop it, or give this one its own "
                    "node.directory"
                ) from None
            write_file(disk, lock, b"%d\n" % os.getpid())
            return self._identity(disk)
        except OSError as error:
            self.close()
            reason = error.strerror or str(error)
            raise EnvironmentFault(f"{self._directory}: cannot be used ({reason}): mount it, or make it writable for this user") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock. Idempotent."""
        release, self._release = self._release, None
        if release is not None:
            release()

    def _holder(self, disk: Disk, lock: str) -> str:
        text = read_file(disk, lock).strip()
        return f" (process {text.decode()})" if text.isdigit() else ""

    def _identity(self, disk: Disk) -> str:
        path = os.path.join(self._directory, IDENTITY_NAME)
        if disk.exists(path):
            return decode_identity(read_file(disk, path), path)
        identity = self._host.entropy.stream("node.directory").randbytes(16).hex()
        write_file(disk, path + ".new", json.dumps({"v": FORMAT, "directory": identity}, sort_keys=True).encode() + b"\n")
        disk.rename(path + ".new", path)
        disk.sync_directory(self._directory)
        return identity


def decode_identity(data: bytes, path: str) -> str:
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise FormatError(f"{path}: of format {fields['v']}, this release knows {FORMAT}: start the release that wrote it")
        return str(fields["directory"])
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path}: not the identity of a node's directory: delete the file to have it made again") from error


def read_file(disk: Disk, path: str) -> bytes:
    file = disk.open(path, readonly=True)
    try:
        return file.pread(_IDENTITY_SIZE_MAX, 0)
    finally:
        file.close()


def write_file(disk: Disk, path: str, data: bytes) -> None:
    file = disk.open(path, create=True)
    try:
        file.truncate(0)
        file.pwrite([data], 0)
        file.sync()
    finally:
        file.close()


@dataclass(frozen=True, slots=True)
class NodeRegistration:
    """The registration of one process of a node."""

    node_id: str
    address: str
    directory: str
    life: str
    has_tls: bool = False
    """Whether its PostgreSQL server offers or requires TLS."""
    knows_placement: bool = False
    """Whether it has copies only where it is chosen for them. Earlier releases refuse to read databases with a placement."""


def encode_registration(value: NodeRegistration) -> bytes:
    fields: dict[str, object] = {"v": FORMAT, "node": value.node_id, "address": value.address}
    fields |= {"directory": value.directory, "life": value.life}
    if value.has_tls:
        fields["tls"] = True
    if value.knows_placement:
        fields["places"] = True
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_registration(data: bytes) -> NodeRegistration:
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise ValueError(f"version {fields['v']}; this release knows {FORMAT}")
        node_id, address, directory, life = (str(fields[name]) for name in ("node", "address", "directory", "life"))
        return NodeRegistration(node_id, address, directory, life, bool(fields.get("tls")), bool(fields.get("places")))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"a node's registration cannot be read: {error}") from error


async def registered_nodes(client: Client) -> list[NodeRegistration]:
    """The registered nodes. One whose registration cannot be read, or that left in the meantime, is left out."""
    tree, root = client.metadata.tree, client.metadata.own_root
    found: list[NodeRegistration] = []
    for name in await names_beneath(tree, own_paths.nodes_path(root)):
        try:
            data, _ = await tree.get(own_paths.node_path(root, own_paths.decode_name(name)))
            found.append(decode_registration(data))
        except (NoNode, FormatError):
            continue
    return found


class NodeRegistrar:
    """Registers this process under its node id: `acquire` it first, then `keep` it."""

    def __init__(self, host: Host, tree: Tree, own_root: str, node_id: str, address: str, directory: str, *, has_tls: bool = False) -> None:
        """
        Args:
            directory: the identity of the node's directory, which this process has locked.
        """
        self._host = host
        self._tree = tree
        self._path = own_paths.node_path(own_root, node_id)
        self._life = host.entropy.stream("node.life").randbytes(8).hex()
        self._own = NodeRegistration(node_id, address, directory, self._life, has_tls, knows_placement=True)
        self._held_by = 0

    @property
    def held(self) -> bool:
        """Whether the registration is of the present session."""
        return self._held_by == self._tree.session_id

    async def acquire(self, wait_s: float) -> None:
        """Register. Waits for the metadata without limit, and for the end of another node's registration at most `wait_s`.

        Raises:
            EnvironmentFault: another node of this name runs. SessionExpired: the metadata tree was closed.
        """
        clock = self._host.clock
        watch = self._tree.watch(self._path)
        backoff = self._backoff()
        seen_s: float | None = None
        try:
            while True:
                try:
                    other = await self._register(replace_former_lives=True)
                except SessionExpired:
                    raise
                except TriplicateError as error:
                    self._host.trace("node.waits_for_metadata", node=self._own.node_id, error=str(error))
                    await sleep(clock, backoff.next_s())
                    continue
                if other is None:
                    return
                seen_s = clock.monotonic() if seen_s is None else seen_s
                if clock.monotonic() >= seen_s + wait_s:
                    where = other.address or "an unknown address"
                    raise EnvironmentFault(
                        f"a node named {self._own.node_id!r} runs already, at {where}: give each node of the cluster its own node.node_id"
                    )
                self._host.trace("node.waits_for_name", node=self._own.node_id, address=other.address)
                await first_of([watch.changed(), sleep_until(clock, seen_s + wait_s)], name="name")
        finally:
            watch.close()

    async def keep(self) -> None:
        """Register again whenever the registration is gone, as after the renewal of a lost session. While another node has the name, this
        one serves without it and is no candidate for elections.

        Raises:
            SessionExpired: the metadata tree was closed.
        """
        watch = self._tree.watch(self._path)
        backoff = self._backoff()
        try:
            while True:
                try:
                    other = await self._register(replace_former_lives=False)
                except SessionExpired:
                    raise
                except TriplicateError as error:
                    self._host.trace("node.not_registered", node=self._own.node_id, error=str(error))
                    await sleep(self._host.clock, backoff.next_s())
                    continue
                backoff.reset()
                if other is not None:
                    self._host.trace("node.name_is_taken", node=self._own.node_id, address=other.address)
                await watch.changed()
        finally:
            watch.close()

    async def withdraw(self) -> None:
        """Delete the registration. When the metadata do not answer, it ends with the session."""
        if self._held_by:
            await shielded(self._withdraw())

    async def _withdraw(self) -> None:
        try:
            async with timeout_at(deadline_after(self._host.clock, WITHDRAW_LIMIT_S)):
                await delete_of_session(self._tree, self._path)
        except (TriplicateError, TimeoutError) as error:
            self._host.trace("node.withdraw", node=self._own.node_id, error=repr(error))
        self._held_by = 0

    async def _register(self, *, replace_former_lives: bool) -> NodeRegistration | None:
        """Create the registration, unless this session has; None, or the registration of another node, which stays."""
        data = encode_registration(self._own)
        while True:
            try:
                await self._tree.create(self._path, data, ephemeral=True, parents=True)
            except NodeExists:
                try:
                    session_id = self._tree.session_id
                    found, stat = await self._tree.get(self._path)
                    if stat.ephemeral_owner != self._tree.session_id:
                        other = _decoded(found)
                        former = other.directory == self._own.directory if replace_former_lives else other.life == self._life
                        if not former:
                            return other
                        await multi_in_session(self._tree, session_id, [DeleteNode(self._path, stat.version)])
                        continue
                except (NoNode, BadVersion):
                    continue
            self._held_by = self._tree.session_id
            return None

    def _backoff(self) -> Backoff:
        return Backoff(RETRY_FIRST_S, RETRY_LONGEST_S, self._host.entropy.stream("node.name"))


def _decoded(data: bytes) -> NodeRegistration:
    """Another node's registration; an empty one where it cannot be read."""
    try:
        return decode_registration(data)
    except FormatError:
        return NodeRegistration("", "", "", "")
