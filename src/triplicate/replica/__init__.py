"""Replicated state machines: the election of a leader, and copies that follow the log."""

from triplicate.replica.copy_folders import empty_folder
from triplicate.replica.core.lease import Lease
from triplicate.replica.core.snapshot_policy import SnapshotSettings
from triplicate.replica.election import UNREADABLE, Candidate, Election, candidate_of, candidates_of, encode_handover, leader_of
from triplicate.replica.failure_detector import FailureDetector, PeerLoss
from triplicate.replica.hosted_copy import CopyPlace, HostedCopy
from triplicate.replica.leader_reads import LeaderReads, LeaseSuccession, SentReads
from triplicate.replica.node_parts import NodeParts
from triplicate.replica.replica import Replica, ReplicaSettings
from triplicate.replica.snapshot_keeper import SnapshotKeeper, SnapshotMachine, StateCopy
from triplicate.replica.state_machine import STANDS_AT, Role, StateMachine, is_position_mismatch

__all__ = [
    "STANDS_AT",
    "UNREADABLE",
    "Candidate",
    "CopyPlace",
    "Election",
    "FailureDetector",
    "HostedCopy",
    "LeaderReads",
    "Lease",
    "LeaseSuccession",
    "NodeParts",
    "PeerLoss",
    "Replica",
    "ReplicaSettings",
    "Role",
    "SentReads",
    "SnapshotKeeper",
    "SnapshotMachine",
    "SnapshotSettings",
    "StateCopy",
    "StateMachine",
    "candidate_of",
    "candidates_of",
    "empty_folder",
    "encode_handover",
    "is_position_mismatch",
    "leader_of",
]
