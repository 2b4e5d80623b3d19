"""Replicated state machines: who leads, and how every copy follows the log."""

from triplicate.replica.core.snapshot_policy import SnapshotSettings
from triplicate.replica.election import UNREADABLE, Candidate, Election, candidates_of, leader_of
from triplicate.replica.machine import STANDS_AT, Role, StateMachine
from triplicate.replica.peers import Loss, Peers
from triplicate.replica.runtime import Replica, ReplicaSettings
from triplicate.replica.snapshots import SnapshotKeeper, SnapshotMachine, StateCopy

__all__ = [
    "STANDS_AT",
    "UNREADABLE",
    "Candidate",
    "Election",
    "Loss",
    "Peers",
    "Replica",
    "ReplicaSettings",
    "Role",
    "SnapshotKeeper",
    "SnapshotMachine",
    "SnapshotSettings",
    "StateCopy",
    "StateMachine",
    "candidates_of",
    "leader_of",
]
