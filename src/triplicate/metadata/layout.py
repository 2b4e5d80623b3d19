"""A cluster's metadata: BookKeeper's layout over the tree, shared by all drivers.

Source: BookKeeper `ZKRegistrationManager.initNewCluster`, `LedgerLayout`, `AbstractZkLedgerManagerFactory`.
"""

from __future__ import annotations

import uuid
from contextlib import suppress

from triplicate.errors import ArgumentError, ConfigError, FormatError, NodeExists, NoNode, WrongCluster
from triplicate.metadata.auditor_election import AuditorElection
from triplicate.metadata.bookie_machines import BookieMachines
from triplicate.metadata.bookie_registry import STALE_WAIT_S, BookieRegistry
from triplicate.metadata.cookies import Cookies
from triplicate.metadata.core import own_paths
from triplicate.metadata.core.paths import FlatPaths, HierarchicalPaths, LedgerPaths, LongHierarchicalPaths, ancestors_of, check_path
from triplicate.metadata.core.tree import CreateNode, Tree, TreeOperation
from triplicate.metadata.damaged_copies import DamagedCopiesRecords
from triplicate.metadata.ensemble_freeze import EnsembleFreezes
from triplicate.metadata.incarnations import Incarnations
from triplicate.metadata.ledger_store import LedgerStore
from triplicate.metadata.network_locations import NetworkLocations
from triplicate.metadata.observed_absences import AbsenceRecord
from triplicate.metadata.read_only_requests import ReadOnlyRequests
from triplicate.metadata.repair_notes import RepairNotes
from triplicate.metadata.retries import retried
from triplicate.metadata.trash import Trash
from triplicate.metadata.underreplication import UnderreplicationManager
from triplicate.metadata.upkeep_requests import UpkeepRequests
from triplicate.runtime import Host

DEFAULT_ROOT = "/ledgers"

LAYOUT_FORMAT = 2
MANAGER_VERSION = 1

_FACTORY_PACKAGE = "org.apache.bookkeeper.meta."
_MANAGERS: dict[str, tuple[str, LedgerPaths]] = {
    "hierarchical": ("HierarchicalLedgerManagerFactory", HierarchicalPaths()),
    "longhierarchical": ("LongHierarchicalLedgerManagerFactory", LongHierarchicalPaths()),
    "flat": ("FlatLedgerManagerFactory", FlatPaths()),
}


def encode_layout(manager: str = "hierarchical") -> bytes:
    """The LAYOUT node of a cluster with the ledger manager `manager`."""
    return f"{LAYOUT_FORMAT}\n{_FACTORY_PACKAGE}{_MANAGERS[manager][0]}:{MANAGER_VERSION}".encode("ascii")


def decode_layout(data: bytes) -> LedgerPaths:
    """The ledger paths that the LAYOUT node selects. Format 2 names a class, format 1 a type.

    Raises:
        FormatError: the format or the ledger manager is unknown to this release.
    """
    lines = data.decode("utf-8", "replace").split("\n")
    manager, _, version = lines[1].partition(":") if len(lines) > 1 else ("", "", "")
    if lines[0] in ("1", "2") and version in ("", str(MANAGER_VERSION)):
        for name, (factory, paths) in _MANAGERS.items():
            # A shaded client may have written a prefix before the package.
            if (lines[0] == "1" and manager == name) or (lines[0] == "2" and f".{manager}".endswith(f".{_FACTORY_PACKAGE}{factory}")):
                return paths
    raise FormatError(f"LAYOUT says {data!r}: the ledger managers known here are {', '.join(_MANAGERS)}")


class ClusterMetadata:
    """The metadata of one cluster: ledgers, bookies, cookies and under-replicated ledgers. Create it with `open`."""

    def __init__(
        self, tree: Tree, host: Host, root: str, instance_id: str, paths: LedgerPaths, *, stale_wait_s: float = STALE_WAIT_S
    ) -> None:
        self.tree = tree
        self.root = root
        self.instance_id = instance_id
        self.own_root = own_paths.own_root(instance_id)
        self.paths = paths
        self.ledgers = LedgerStore(tree, host, root, paths)
        self.trash = Trash(tree, host, self.own_root, self.ledgers)
        self.bookies = BookieRegistry(tree, host, root, stale_wait_s=stale_wait_s)
        self.cookies = Cookies(tree, host, root)
        self.machines = BookieMachines(tree, host, self.own_root)
        self.incarnations = Incarnations(tree, host, self.own_root)
        self.network_locations = NetworkLocations(tree, host, self.own_root)
        self.read_only_requests = ReadOnlyRequests(tree, host, self.own_root)
        self.repair_notes = RepairNotes(tree, host, self.own_root)
        self.damaged_copies = DamagedCopiesRecords(tree, host, self.own_root)
        self.ensemble_freezes = EnsembleFreezes(tree, host, self.own_root)
        self.absences = AbsenceRecord(tree, host, self.own_root)
        self.upkeep_requests = UpkeepRequests(tree, host, self.own_root)
        self.under_replication = UnderreplicationManager(tree, host, root)
        self.auditor = AuditorElection(tree, host, root)

    @classmethod
    async def open(
        cls,
        tree: Tree,
        host: Host,
        *,
        create: bool = False,
        root: str = DEFAULT_ROOT,
        manager: str | None = None,
        stale_wait_s: float = STALE_WAIT_S,
        uri: str = "",
    ) -> ClusterMetadata:
        """Find the cluster under `root`.

        Args:
            tree: a session. The result owns it (`aclose` closes it).
            create: create the cluster if it does not exist. If several processes try at once, one creates it and the others open it.
            manager: require this layout (``hierarchical``, ``longhierarchical``, ``flat``); None accepts the cluster's.
            stale_wait_s: time in seconds that a registering bookie waits until the registration of its previous run is gone.
            uri: of the tree, for errors.

        Raises:
            ConfigError: there is no cluster, or its layout is not `manager`.
            FormatError: the cluster's layout is unknown to this release.
        """
        if check_path(root) == "/":
            raise ArgumentError("the root of a cluster cannot be '/'")
        if manager is not None and manager not in _MANAGERS:
            raise ConfigError(f"{manager!r} is no ledger manager: {', '.join(_MANAGERS)}")
        instance_id = await _read(tree, host, f"{root}/INSTANCEID")
        if instance_id is None:
            if not create:
                where = f" of {uri}" if uri else ""
                raise ConfigError(f"there is no cluster under {root}{where}: correct the address, or start a cluster with `triplicate up`")
            instance_id = await _initialise(tree, host, root)
        layout = await _read(tree, host, f"{root}/LAYOUT")
        if layout is None:
            await _create_if_missing(tree, host, f"{root}/LAYOUT", encode_layout(manager or "hierarchical"))
            layout = await _read(tree, host, f"{root}/LAYOUT") or b""
        paths = decode_layout(layout)
        if manager is not None and paths.manager != manager:
            raise ConfigError(f"the cluster under {root} keeps its ledgers by {paths.manager}, not {manager}")
        await _create_if_missing(tree, host, f"{root}/available/readonly", b"")
        return cls(tree, host, root, instance_id.decode("ascii", "replace").strip(), paths, stale_wait_s=stale_wait_s)

    async def check_same(self, tree: Tree | None = None) -> None:
        """Check that the metadata is still this cluster's. A server that lost its disk returns with another cluster or with none.

        Args:
            tree: the session to read with, if not this cluster's.

        Raises:
            WrongCluster: the store holds another cluster or none.
            ConnectionLost: the store does not answer.
        """
        try:
            data, _ = await (tree or self.tree).get(f"{self.root}/INSTANCEID")
        except NoNode:
            found = "no cluster any more"
        else:
            found = data.decode("ascii", "replace").strip()
        if found != self.instance_id:
            raise WrongCluster(
                f"{self.root} in the metadata store was cluster {self.instance_id} and is {found} now: bring its metadata back, "
                "or stop this process"
            )

    async def aclose(self) -> None:
        """End the session. Its registrations vanish. Idempotent."""
        await self.tree.close()

    async def __aenter__(self) -> ClusterMetadata:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def _initialise(tree: Tree, host: Host, root: str) -> bytes:
    """Create root, available, available/readonly and INSTANCEID in one transaction. Returns the instance id, this process's or that of a
    concurrent one."""
    instance_id = str(uuid.UUID(int=host.entropy.stream("metadata.instance_id").getrandbits(128), version=4)).encode("ascii")
    for ancestor in ancestors_of(root):
        await _create_if_missing(tree, host, ancestor, b"")

    async def attempt() -> bytes | None:
        # Existing nodes (an operator may have created the root) are left out. The process that creates INSTANCEID wins.
        nodes = {root: b"", f"{root}/available": b"", f"{root}/available/readonly": b"", f"{root}/INSTANCEID": instance_id}
        operations: list[TreeOperation] = [CreateNode(path, data) for path, data in nodes.items() if await tree.exists(path) is None]
        with suppress(NodeExists):
            # Another process may initialise at the same time, or the transaction was applied although its answer was lost.
            await tree.multi(operations)
        return await _read(tree, host, f"{root}/INSTANCEID")

    while True:
        found = await retried(host, attempt)
        if found is not None:
            return found


async def _read(tree: Tree, host: Host, path: str) -> bytes | None:
    try:
        data, _ = await retried(host, lambda: tree.get(path))
    except NoNode:
        return None
    return data


async def _create_if_missing(tree: Tree, host: Host, path: str, data: bytes) -> None:
    try:
        await retried(host, lambda: tree.create(path, data, parents=True))
    except NodeExists:
        return
