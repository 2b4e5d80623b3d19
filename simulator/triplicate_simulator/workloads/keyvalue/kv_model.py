"""The model of the store, which its clients share: the history, the nodes, and counts."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from triplicate_simulator.checkers.linearizability import Invoked, Refused, Returned
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.workloads.keyvalue.kv_load import StoreLoad
from triplicate_simulator.workloads.keyvalue.kv_nodes import StoreServer

RECENT = 20
"""Acknowledged writes that readers of copies look for."""
COUNTED = ("operations", "unknown", "refused", "session_reads", "expiring_reads", "watched", "bursts")


class RecentWrite(NamedTuple):
    """A write of a key that is never deleted."""

    key: str
    position: int


class StoreModel:
    """State that all clients of the store share. It belongs to the world: no node's crash removes it."""

    def __init__(self, context: RunContext, load: StoreLoad, servers: Mapping[str, StoreServer]) -> None:
        self.context = context
        self.load = load
        self.servers = servers
        self.lull_until_s = 0.0
        """Clients start no changes before this time, so that a replaced leader does not learn of it by a failed write."""
        self.recent: deque[RecentWrite] = deque(maxlen=RECENT)
        self.counts = dict.fromkeys(COUNTED, 0)
        self.last_values: dict[str, int] = {}
        self._operations = 0
        self._values = 0

    def note(self, event: Any, node: str = "clients") -> None:
        """Add an event to the history, and a line to the timeline."""
        self.context.history.add(event)
        facts = {field.name: getattr(event, field.name) for field in dataclasses.fields(event) if field.name != "time_s"}
        self.context.world.recorder.fact(node, f"store.{type(event).__name__.lower()}", facts)

    def value(self) -> int:
        """Return a value that no other operation writes."""
        self._values += 1
        return self._values * 1000

    def invoke(self, client: str, register: str, kind: str, arguments: tuple[int, ...] = ()) -> int:
        """Record that an operation on a register begins."""
        self._operations += 1
        self.counts["operations"] += 1
        self.note(Invoked(self.context.time(), self._operations, client, register, kind, arguments))
        return self._operations

    def returned(self, operation: int, result: Any) -> None:
        self.note(Returned(self.context.time(), operation, result))

    def refused(self, operation: int) -> None:
        self.counts["refused"] += 1
        self.note(Refused(self.context.time(), operation))

    def leaders(self) -> list[StoreServer]:
        """The nodes that consider themselves leader, the latest first. There may be more than one."""
        leading = [server for server in self.servers.values() if server.leads]
        return sorted(leading, key=lambda server: server.leading_epoch, reverse=True)
