"""Copies that a node is to give up. Each stays, and is served, until every copy that is expected elsewhere has reached its position."""

from __future__ import annotations

from triplicate.client import Client
from triplicate.metadata import own_paths
from triplicate.replica import Role, candidates_of, expected_nodes, listed_nodes, may_leave, node_entry
from triplicate.sql.hosting.database_directory import read_info
from triplicate.sql.hosting.hosted_database import HostedDatabase

_FOLLOWS = frozenset([Role.FOLLOWER.value, Role.LEADER.value])


class CopyDepartures:
    """The copies that a node is to give up."""

    def __init__(self, client: Client, node_id: str) -> None:
        self._client = client
        self._node_id = node_id
        self._positions: dict[bytes, int | None] = {}
        """Of the copies when it was first seen that they are no longer expected, by the identity of the database. None: not open yet."""

    @property
    def is_empty(self) -> bool:
        return not self._positions

    def begin(self, hosted: HostedDatabase) -> None:
        """The copy is no longer expected here. Idempotent."""
        hosted.is_leaving = True
        if self._positions.get(hosted.info.identity) is None:
            is_open = hosted.replica.opened.done()
            self._positions[hosted.info.identity] = hosted.database.position if is_open else None

    def end(self, hosted: HostedDatabase) -> None:
        """The copy is expected here, or was given up. Idempotent."""
        hosted.is_leaving = False
        self._positions.pop(hosted.info.identity, None)

    async def may_leave(self, hosted: HostedDatabase) -> bool:
        """Whether a copy can be deleted now. The facts are read after a sync, because a deletion depends on them.

        Raises:
            TriplicateError: the metadata do not answer.
        """
        position = self._positions[hosted.info.identity]
        if position is None or hosted.role in (Role.LEADER, Role.CANDIDATE):
            return False
        client, name = self._client, hosted.info.name
        await client.metadata.tree.sync(client.metadata.own_root)
        info = await read_info(client, name)
        own = await node_entry(client, self._node_id)
        if info.identity != hosted.info.identity or info.placement.assigns(self._node_id, is_draining=own.is_draining):
            return False
        path = own_paths.database_path(client.metadata.own_root, name)
        positions = {one.node_id: one.position for one in await candidates_of(client.metadata.tree, path) if one.role in _FOLLOWS}
        expected = expected_nodes(info.placement, [one.placed() for one in await listed_nodes(client)])
        return may_leave(self._node_id, expected, positions, position)
