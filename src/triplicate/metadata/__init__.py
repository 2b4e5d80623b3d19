"""Metadata: the tree, its drivers, and BookKeeper's layout over it."""

from triplicate.metadata import own
from triplicate.metadata.address import cluster_root, open_cluster, open_tree
from triplicate.metadata.auditor import AuditorElection
from triplicate.metadata.bookie_ids import check_bookie_id, is_bookie_id
from triplicate.metadata.bookies import BookieDirectory
from triplicate.metadata.cookies import Cookie, Cookies, decode_cookie, encode_cookie
from triplicate.metadata.copying import CopyReport, copy_metadata
from triplicate.metadata.incarnations import Incarnation, Incarnations, decode_incarnation, encode_incarnation
from triplicate.metadata.known_addresses import Location
from triplicate.metadata.layout import DEFAULT_ROOT, ClusterMetadata, decode_layout, encode_layout
from triplicate.metadata.ledgers import LedgerIdIterator, LedgerStore, Versioned
from triplicate.metadata.memory import Fault, MemoryStore, MemoryTree
from triplicate.metadata.paths import FlatPaths, HierarchicalPaths, LedgerPaths, LongHierarchicalPaths, underreplicated_path
from triplicate.metadata.renewing import RenewingTree
from triplicate.metadata.served import ServedStore, ServedTree
from triplicate.metadata.service_info import BookieServiceInfo, Endpoint, bookie_service, decode_service_info, encode_service_info
from triplicate.metadata.sqlite import SqliteTree
from triplicate.metadata.trash import Trash, TrashedLedger
from triplicate.metadata.tree import ANY_VERSION, Check, Create, Delete, Operation, SetData, Stat, Tree, Watch
from triplicate.metadata.underreplication import Mark, MarkIterator, MarkLock, PeriodicCheck, UnderReplication
from triplicate.metadata.watching import JoinedWatch

__all__ = [
    "ANY_VERSION",
    "DEFAULT_ROOT",
    "AuditorElection",
    "BookieDirectory",
    "BookieServiceInfo",
    "Check",
    "ClusterMetadata",
    "Cookie",
    "Cookies",
    "CopyReport",
    "Create",
    "Delete",
    "Endpoint",
    "Fault",
    "FlatPaths",
    "HierarchicalPaths",
    "Incarnation",
    "Incarnations",
    "JoinedWatch",
    "LedgerIdIterator",
    "LedgerPaths",
    "LedgerStore",
    "Location",
    "LongHierarchicalPaths",
    "Mark",
    "MarkIterator",
    "MarkLock",
    "MemoryStore",
    "MemoryTree",
    "Operation",
    "PeriodicCheck",
    "RenewingTree",
    "ServedStore",
    "ServedTree",
    "SetData",
    "SqliteTree",
    "Stat",
    "Trash",
    "TrashedLedger",
    "Tree",
    "UnderReplication",
    "Versioned",
    "Watch",
    "bookie_service",
    "check_bookie_id",
    "cluster_root",
    "copy_metadata",
    "decode_cookie",
    "decode_incarnation",
    "decode_layout",
    "decode_service_info",
    "encode_cookie",
    "encode_incarnation",
    "encode_layout",
    "encode_service_info",
    "is_bookie_id",
    "open_cluster",
    "open_tree",
    "own",
    "underreplicated_path",
]
