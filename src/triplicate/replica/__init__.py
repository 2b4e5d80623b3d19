"""Replicated state machines: the election of a leader, and copies that follow the log."""

from triplicate.replica.copy_folders import empty_folder
from triplicate.replica.core.placement import (
    COPIES_MAX,
    EVERYWHERE,
    WEIGHT_MAX,
    CopyChange,
    LeaderMove,
    PlacedNode,
    PlacedReplica,
    Placement,
    best_leader,
    expected_nodes,
    may_leave,
    plan_copies,
    plan_leaders,
    shortages,
)
from triplicate.replica.core.snapshot_policy import SnapshotSettings
from triplicate.replica.election import UNREADABLE, Candidate, Election, candidates_of, leader_of
from triplicate.replica.failure_detector import FailureDetector, PeerLoss
from triplicate.replica.hosted_copies import HostedCopies
from triplicate.replica.hosted_copy import HostedCopy, HostedMachine
from triplicate.replica.hosting_loop import HostingLoop
from triplicate.replica.leader_handover import hand_leader_over
from triplicate.replica.leader_reads import LeaderReads, LeaseSuccession, SentReads
from triplicate.replica.node_parts import NodeParts
from triplicate.replica.node_registration import NodeDirectory, NodeRegistrar, NodeRegistration, decode_registration, registered_nodes
from triplicate.replica.placed_nodes import (
    ListedNode,
    NodeEntry,
    encode_entry,
    ensure_node_entry,
    expected_copies,
    listed_nodes,
    missing_copies,
    node_entry,
    placement_change,
    placement_version,
)
from triplicate.replica.replica import Replica, ReplicaSettings
from triplicate.replica.replica_directory import ReplicaDirectory, ReplicaInfo
from triplicate.replica.replica_entries import LONGEST_LEASE_S, check_lease, create_with_log, deletions_of, names_beneath
from triplicate.replica.snapshot_keeper import SnapshotKeeper, SnapshotMachine, StateCopy
from triplicate.replica.state_machine import STANDS_AT, Role, StateMachine, is_position_mismatch

__all__ = [
    "COPIES_MAX",
    "EVERYWHERE",
    "LONGEST_LEASE_S",
    "STANDS_AT",
    "UNREADABLE",
    "WEIGHT_MAX",
    "Candidate",
    "CopyChange",
    "Election",
    "FailureDetector",
    "HostedCopies",
    "HostedCopy",
    "HostedMachine",
    "HostingLoop",
    "LeaderMove",
    "LeaderReads",
    "LeaseSuccession",
    "ListedNode",
    "NodeDirectory",
    "NodeEntry",
    "NodeParts",
    "NodeRegistrar",
    "NodeRegistration",
    "PeerLoss",
    "PlacedNode",
    "PlacedReplica",
    "Placement",
    "Replica",
    "ReplicaDirectory",
    "ReplicaInfo",
    "ReplicaSettings",
    "Role",
    "SentReads",
    "SnapshotKeeper",
    "SnapshotMachine",
    "SnapshotSettings",
    "StateCopy",
    "StateMachine",
    "best_leader",
    "candidates_of",
    "check_lease",
    "create_with_log",
    "decode_registration",
    "deletions_of",
    "empty_folder",
    "encode_entry",
    "ensure_node_entry",
    "expected_copies",
    "expected_nodes",
    "hand_leader_over",
    "is_position_mismatch",
    "leader_of",
    "listed_nodes",
    "may_leave",
    "missing_copies",
    "names_beneath",
    "node_entry",
    "placement_change",
    "placement_version",
    "plan_copies",
    "plan_leaders",
    "registered_nodes",
    "shortages",
]
