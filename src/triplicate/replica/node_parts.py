"""The objects that all replicas of a node share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from triplicate.client import Client
from triplicate.config.node_settings import NodeSettings
from triplicate.log import Logs
from triplicate.replica.failure_detector import PeerLoss
from triplicate.runtime import Host, Metrics


@dataclass(frozen=True, slots=True)
class NodeParts:
    """Objects that all replicas of a node share, also if their machines are of different kinds."""

    host: Host
    client: Client
    logs: Logs
    settings: NodeSettings
    metrics: Metrics | None
    address: str
    """Address of the node, which its peers probe, as other nodes give it to clients."""
    holds_name: Callable[[], bool]
    """Whether this process has registered the node's id in the cluster."""
    snapshot_turn: asyncio.Lock
    """A node makes one snapshot at a time."""
    gone: Callable[[str], Coroutine[Any, Any, PeerLoss]] | None
    """Returns when the process at an address has ended; None without failure detection."""
    resp_address: str = ""
    """Address of the node for clients of Redis, as other nodes give it to them; empty if it serves none."""
