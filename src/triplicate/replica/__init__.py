"""Replicated state machines: the election of a leader, and copies that follow the log."""

from triplicate.replica.core.snapshot_policy import SnapshotSettings
from triplicate.replica.election import UNREADABLE, Candidate, Election, candidate_of, candidates_of, encode_handover, leader_of
from triplicate.replica.failure_detector import FailureDetector, PeerLoss
from triplicate.replica.replica import Replica, ReplicaSettings
from triplicate.replica.snapshot_keeper import SnapshotKeeper, SnapshotMachine, StateCopy
from triplicate.replica.state_machine import STANDS_AT, Role, StateMachine

__all__ = [
    "STANDS_AT",
    "UNREADABLE",
    "Candidate",
    "Election",
    "FailureDetector",
    "PeerLoss",
    "Replica",
    "ReplicaSettings",
    "Role",
    "SnapshotKeeper",
    "SnapshotMachine",
    "SnapshotSettings",
    "StateCopy",
    "StateMachine",
    "candidate_of",
    "candidates_of",
    "encode_handover",
    "leader_of",
]
