"""Metadata: the tree, its drivers, and BookKeeper's layout over it."""

from triplicate.metadata.auditor_election import AuditorElection
from triplicate.metadata.bookie_machines import BookieMachines
from triplicate.metadata.bookie_registry import BookieRegistry, RegisteredBookies
from triplicate.metadata.cookies import Cookie, Cookies, decode_cookie, encode_cookie
from triplicate.metadata.copying import CopyReport, copy_metadata
from triplicate.metadata.core import own_paths
from triplicate.metadata.core.bookie_ids import check_bookie_id, is_bookie_id
from triplicate.metadata.core.known_addresses import Location
from triplicate.metadata.core.paths import FlatPaths, HierarchicalPaths, LedgerPaths, LongHierarchicalPaths, underreplicated_path
from triplicate.metadata.core.service_info import (
    BookieServiceInfo,
    Endpoint,
    bookie_service,
    decode_service_info,
    encode_service_info,
    machine_of,
    registered_bookie,
)
from triplicate.metadata.core.tree import ANY_VERSION, CheckVersion, CreateNode, DeleteNode, SetData, Stat, Tree, TreeOperation, Watch
from triplicate.metadata.drivers.memory_tree import InjectedFault, MemoryStore, MemoryTree
from triplicate.metadata.drivers.metadata_access import AclState, MetadataAccess
from triplicate.metadata.drivers.renewing_tree import RenewingTree
from triplicate.metadata.drivers.replicated_memory import ReplicatedMemoryStore, ReplicatedMemoryTree
from triplicate.metadata.drivers.sqlite_tree import SqliteTree
from triplicate.metadata.drivers.watches import JoinedWatch
from triplicate.metadata.ensemble_freeze import FREEZE_S_MAX, EnsembleFreeze, EnsembleFreezes
from triplicate.metadata.incarnations import Incarnation, Incarnations, decode_incarnation, encode_incarnation
from triplicate.metadata.layout import DEFAULT_ROOT, ClusterMetadata, decode_layout, encode_layout
from triplicate.metadata.leading_server import is_beside_leading_server
from triplicate.metadata.ledger_store import LedgerIdIterator, LedgerStore, Versioned
from triplicate.metadata.lost_entries import may_have_lost_entries
from triplicate.metadata.network_locations import LocationTable, NetworkLocations
from triplicate.metadata.node_acls import AclReport, NodeAcls
from triplicate.metadata.node_identity import (
    IdentifiedNode,
    create_identified,
    creation,
    ensure_node,
    identity_check,
    identity_nodes,
    new_identity,
    read_identified,
)
from triplicate.metadata.observed_absences import AbsenceRecord, ObservedAbsences
from triplicate.metadata.read_only_requests import RequestChange
from triplicate.metadata.repair_notes import RepairNote, RepairNotes
from triplicate.metadata.repair_progress import RepairProgress
from triplicate.metadata.service_uri import METADATA_FILE, cluster_root, open_cluster, open_tree
from triplicate.metadata.session_nodes import delete_of_session, multi_in_session
from triplicate.metadata.store_time import store_time_ms
from triplicate.metadata.trash import Trash, TrashedLedger, TrashedLedgerStore
from triplicate.metadata.underreplication import (
    HeldLock,
    PeriodicCheck,
    ReplicationLock,
    UnderreplicatedIterator,
    UnderreplicatedLedger,
    UnderreplicationManager,
)
from triplicate.metadata.upkeep_requests import UpkeepAction, UpkeepRequest, UpkeepRequests, UpkeepState

__all__ = [
    "ANY_VERSION",
    "DEFAULT_ROOT",
    "FREEZE_S_MAX",
    "METADATA_FILE",
    "AbsenceRecord",
    "AclReport",
    "AclState",
    "AuditorElection",
    "BookieMachines",
    "BookieRegistry",
    "BookieServiceInfo",
    "CheckVersion",
    "ClusterMetadata",
    "Cookie",
    "Cookies",
    "CopyReport",
    "CreateNode",
    "DeleteNode",
    "Endpoint",
    "EnsembleFreeze",
    "EnsembleFreezes",
    "FlatPaths",
    "HeldLock",
    "HierarchicalPaths",
    "IdentifiedNode",
    "Incarnation",
    "Incarnations",
    "InjectedFault",
    "JoinedWatch",
    "LedgerIdIterator",
    "LedgerPaths",
    "LedgerStore",
    "Location",
    "LocationTable",
    "LongHierarchicalPaths",
    "MemoryStore",
    "MemoryTree",
    "MetadataAccess",
    "NetworkLocations",
    "NodeAcls",
    "ObservedAbsences",
    "PeriodicCheck",
    "RegisteredBookies",
    "RenewingTree",
    "RepairNote",
    "RepairNotes",
    "RepairProgress",
    "ReplicatedMemoryStore",
    "ReplicatedMemoryTree",
    "ReplicationLock",
    "RequestChange",
    "SetData",
    "SqliteTree",
    "Stat",
    "Trash",
    "TrashedLedger",
    "TrashedLedgerStore",
    "Tree",
    "TreeOperation",
    "UnderreplicatedIterator",
    "UnderreplicatedLedger",
    "UnderreplicationManager",
    "UpkeepAction",
    "UpkeepRequest",
    "UpkeepRequests",
    "UpkeepState",
    "Versioned",
    "Watch",
    "bookie_service",
    "check_bookie_id",
    "cluster_root",
    "copy_metadata",
    "create_identified",
    "creation",
    "decode_cookie",
    "decode_incarnation",
    "decode_layout",
    "decode_service_info",
    "delete_of_session",
    "encode_cookie",
    "encode_incarnation",
    "encode_layout",
    "encode_service_info",
    "ensure_node",
    "identity_check",
    "identity_nodes",
    "is_beside_leading_server",
    "is_bookie_id",
    "machine_of",
    "may_have_lost_entries",
    "multi_in_session",
    "new_identity",
    "open_cluster",
    "open_tree",
    "own_paths",
    "read_identified",
    "registered_bookie",
    "store_time_ms",
    "underreplicated_path",
]
