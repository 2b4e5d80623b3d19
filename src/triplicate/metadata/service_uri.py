"""Opening a metadata store, and the cluster in it, from a service URI."""

from __future__ import annotations

import os.path
import re
from dataclasses import dataclass

from triplicate.errors import ArgumentError, ConfigError
from triplicate.metadata.core.paths import check_path
from triplicate.metadata.core.tree import SESSION_NOTICED_S, SESSION_TIMEOUT_S, Tree
from triplicate.metadata.drivers.memory_tree import MemoryStore, MemoryTree
from triplicate.metadata.drivers.metadata_access import MetadataAccess
from triplicate.metadata.drivers.renewing_tree import RenewingTree
from triplicate.metadata.drivers.sqlite_tree import SqliteTree
from triplicate.metadata.layout import DEFAULT_ROOT, ClusterMetadata
from triplicate.runtime import Host

METADATA_FILE = "metadata.db"
"""In the folder of a cluster that `triplicate up` has made."""
KNOWN = "memory: (private to this process), sqlite:///absolute/path/of/a/file, zk://host:port;host:port/ledgers"

_MANAGERS = {"": None, "null": None, "flat": "flat", "hierarchical": "hierarchical", "longhierarchical": "longhierarchical"}
_ZOOKEEPER = re.compile(r"zk(?:\+([a-z]*))?://([^/]*)(/.*)?", re.DOTALL)
_DEFAULT_PORT = 2181


@dataclass(frozen=True, slots=True)
class ZooKeeperUri:
    """The parts of a BookKeeper service URI."""

    servers: str
    """``host:port,host:port``, the form of ZooKeeper's clients."""
    root: str
    """The root of the ledgers, not a node above it."""
    manager: str | None
    """The layout that the URI requires; None accepts the cluster's layout."""


def parse_zookeeper(uri: str) -> ZooKeeperUri:
    """Parse ``zk[+type]://host:port;host:port/root``. Servers may also be separated by commas.

    Source: BookKeeper `ZKMetadataDriverBase`, `AbstractZkLedgerManagerFactory`.

    Raises:
        ConfigError: the URI does not have this form, or its type is unknown.
    """
    match = _ZOOKEEPER.fullmatch(uri)
    if match is None:
        raise ConfigError(f"{uri!r} is not the address of a cluster in ZooKeeper: zk://host:port;host:port/ledgers")
    kind, servers, root = match[1] or "", re.split("[;,]", match[2]), match[3] or ""
    if kind not in _MANAGERS:
        known = ", ".join(f"zk+{name}" for name in _MANAGERS if name)
        raise ConfigError(f"{uri!r}: zk+{kind} is unknown; known are zk, {known}")
    for server in servers:
        name, _, port = server.rpartition(":") if ":" in server.rpartition("]")[2] else (server, "", str(_DEFAULT_PORT))
        if not re.fullmatch(r"[\w.\-]+|\[[0-9a-fA-F:.]+\]", name) or not port.isascii() or not port.isdigit() or not 0 < int(port) < 2**16:
            raise ConfigError(f"{uri!r}: {server!r} is not host:port")
    try:
        root = check_path(root)
    except ArgumentError:
        root = "/"
    if root == "/":
        raise ConfigError(f"{uri!r} names no root: put the path of the ledgers behind the servers, by default {DEFAULT_ROOT}")
    return ZooKeeperUri(",".join(servers), root, _MANAGERS[kind])


async def open_tree(
    uri: str,
    host: Host,
    *,
    session_timeout_s: float = SESSION_TIMEOUT_S,
    watch_interval_s: float = 0.0,
    access: MetadataAccess | None = None,
    create: bool = True,
) -> Tree:
    """Open the store at `uri`. A lost session is replaced by a new one (`RenewingTree`).

    Args:
        uri: ``memory:`` creates a private store; ``sqlite:///absolute/path`` opens a file; ``zk://host:port;host:port/ledgers`` connects to
            ZooKeeper.
        session_timeout_s: ZooKeeper expires the session after this time without a message. The server may adjust it to its own bounds.
        watch_interval_s: how late the watches of this session may be, in seconds, so that an idle process seldom wakes. It applies to a
            file, which is checked for changes; ZooKeeper reports them.
        access: of this process to ZooKeeper; None for none. An embedded store is protected by the modes of its files.
        create: make the file if it is missing.

    Raises:
        ConfigError: the URI has no known form, the file is missing or not usable, or kazoo is missing.
        ConnectionLost: ZooKeeper does not answer. AccessRefused: it refuses this process, or this process its certificate.
    """
    if uri == "memory:":
        return MemoryTree(MemoryStore(host.clock))
    if uri.startswith("sqlite:///"):
        path = uri.removeprefix("sqlite://")

        async def open_session(*, create: bool = False) -> Tree:
            return await SqliteTree.open(path, host, watch_interval_s=watch_interval_s, create=create)

        return RenewingTree(await open_session(create=create), open_session, host)
    if re.match(r"zk(\+[^:/]*)?://", uri):
        return await _open_zookeeper(parse_zookeeper(uri).servers, host, session_timeout_s, access)
    raise ConfigError(f"{uri!r} is not the address of a metadata store; {_meant_note(uri)}known are: {KNOWN}")


def _meant_note(uri: str) -> str:
    """A proposal for a path, and for a URI with too few slashes; empty for others."""
    words = uri.removeprefix("sqlite:").removeprefix("//")
    files = [os.path.join(path, METADATA_FILE) if os.path.isdir(path) else path for path in (os.path.abspath(words), f"/{words}")]
    file = next(filter(os.path.exists, files), files[0] if uri.startswith("sqlite:") else "")
    return f"did you mean sqlite://{file}? " if file else ""


async def _open_zookeeper(servers: str, host: Host, session_timeout_s: float, access: MetadataAccess | None) -> Tree:
    try:
        # Imported here because kazoo is an optional dependency and slow to import.
        from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree
    except ImportError as error:
        raise ConfigError(f"ZooKeeper needs kazoo ({error}): pip install 'triplicate[zookeeper]'") from error

    async def open_session() -> Tree:
        return await ZooKeeperTree.open(servers, host, session_timeout_s=session_timeout_s, access=access)

    first = await open_session()
    try:
        # The server may lack changes that an earlier run of this process has read.
        await first.sync("/")
    except BaseException:
        await first.close()
        raise
    return RenewingTree(first, open_session, host)


async def open_cluster(
    uri: str,
    host: Host,
    *,
    create: bool = False,
    session_timeout_s: float = SESSION_TIMEOUT_S,
    watch_interval_s: float = 0.0,
    access: MetadataAccess | None = None,
) -> ClusterMetadata:
    """Open the cluster at `uri`: under the URI's root in ZooKeeper, under the default root in other stores.

    Args:
        create: create the cluster if it does not exist.
        session_timeout_s, watch_interval_s, access: see `open_tree`.

    Raises:
        ConfigError: see `open_tree` and `ClusterMetadata.open`; also if the URI requires another layout than the cluster's.
        FormatError: the cluster's layout is unknown. ConnectionLost: ZooKeeper does not answer. AccessRefused: see `open_tree`.
    """
    root, manager = cluster_root(uri)
    tree = await open_tree(uri, host, session_timeout_s=session_timeout_s, watch_interval_s=watch_interval_s, access=access, create=create)
    # An earlier run of the process may have used the default timeout.
    stale_wait_s = max(session_timeout_s, SESSION_TIMEOUT_S) + SESSION_NOTICED_S
    try:
        cluster = await ClusterMetadata.open(tree, host, create=create, root=root, manager=manager, stale_wait_s=stale_wait_s, uri=uri)
    except BaseException:
        await tree.close()
        raise
    if isinstance(tree, RenewingTree):
        # A bookie must never use the metadata of another cluster: its garbage collection deletes ledgers that the metadata does not list.
        tree.require(cluster.check_same)
    return cluster


def cluster_root(uri: str) -> tuple[str, str | None]:
    """The root that a URI names, and the layout that it requires."""
    if uri.startswith("zk"):
        address = parse_zookeeper(uri)
        return address.root, address.manager
    return DEFAULT_ROOT, None
