"""Copies that a node is to give up. Each stays, and is served, until every copy that is expected elsewhere has reached its position."""

from __future__ import annotations

from typing import Generic

from triplicate.client import Client
from triplicate.replica.core.placement import expected_nodes, may_leave
from triplicate.replica.election import candidates_of
from triplicate.replica.hosted_copy import HostedCopy, Machine
from triplicate.replica.placed_nodes import listed_nodes, node_entry
from triplicate.replica.replica_directory import Info, ReplicaDirectory
from triplicate.replica.state_machine import Role

_FOLLOWS = frozenset([Role.FOLLOWER.value, Role.LEADER.value])


class CopyDepartures(Generic[Machine, Info]):
    """The copies that a node is to give up."""

    def __init__(self, client: Client, directory: ReplicaDirectory[Info], node_id: str) -> None:
        self._client = client
        self._directory = directory
        self._node_id = node_id
        self._positions: dict[bytes, int | None] = {}
        """Of the copies when it was first seen that they are no longer expected, by the identity of the replica. None: not open yet."""

    @property
    def is_empty(self) -> bool:
        return not self._positions

    def begin(self, hosted: HostedCopy[Machine, Info]) -> None:
        """The copy is no longer expected here. Idempotent."""
        hosted.is_leaving = True
        if self._positions.get(hosted.info.identity) is None:
            is_open = hosted.replica.opened.done()
            self._positions[hosted.info.identity] = hosted.machine.position if is_open else None

    def end(self, hosted: HostedCopy[Machine, Info]) -> None:
        """The copy is expected here, or was given up. Idempotent."""
        hosted.is_leaving = False
        self._positions.pop(hosted.info.identity, None)

    async def may_leave(self, hosted: HostedCopy[Machine, Info]) -> bool:
        """Whether a copy can be deleted now. The facts are read after a sync, because a deletion depends on them.

        Raises:
            TriplicateError: the metadata do not answer.
        """
        position = self._positions[hosted.info.identity]
        if position is None or hosted.role in (Role.LEADER, Role.CANDIDATE):
            return False
        client, name = self._client, hosted.info.name
        await client.metadata.tree.sync(client.metadata.own_root)
        info = await self._directory.read(name)
        own = await node_entry(client, self._node_id)
        if info is None or info.identity != hosted.info.identity:
            return False
        if info.placement.assigns(self._node_id, is_draining=own.is_draining):
            return False
        path = self._directory.entry_path(name)
        positions = {one.node_id: one.position for one in await candidates_of(client.metadata.tree, path) if one.role in _FOLLOWS}
        expected = expected_nodes(info.placement, [one.placed() for one in await listed_nodes(client)])
        return may_leave(self._node_id, expected, positions, position)
