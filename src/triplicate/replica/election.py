"""Who should lead: candidates and the leader's sign in the metadata.

This is about liveness only. Two leaders at once would do no harm: the log has one writer, and who takes it over fences the other.
Below the replica's node: ``candidates/<node id>`` and ``leader``, all ephemeral, JSON with node, address and position.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from triplicate.errors import BadVersion, FormatError, NodeExists, NoNode
from triplicate.metadata import Tree
from triplicate.runtime import Host, sleep

FORMAT = 1
_SMALL_DELAY_S = 0.02


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that holds a copy."""

    node_id: str
    address: str
    """Where its clients connect to, host:port."""
    position: int


def encode_candidate(candidate: Candidate) -> bytes:
    fields = {"v": FORMAT, "node": candidate.node_id, "address": candidate.address, "position": candidate.position}
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_candidate(data: bytes) -> Candidate:
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise ValueError(f"version {fields['v']}; this release knows {FORMAT}")
        return Candidate(str(fields["node"]), str(fields["address"]), int(fields["position"]))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"a candidate's node cannot be read: {error}") from error


async def leader_of(tree: Tree, path: str) -> Candidate | None:
    """Who leads the replica whose node is `path`, or None."""
    try:
        data, _ = await tree.get(f"{path}/leader")
    except NoNode:
        return None
    return decode_candidate(data)


async def candidates_of(tree: Tree, path: str) -> list[Candidate]:
    """All nodes that hold a copy now, by node id."""
    try:
        names, _ = await tree.children(f"{path}/candidates")
    except NoNode:
        return []
    found = []
    for name in names:
        try:
            data, _ = await tree.get(f"{path}/candidates/{name}")
        except NoNode:
            continue
        found.append(decode_candidate(data))
    return found


class Election:
    """One node's part in the election of one replica's leader.

    Args:
        path: the replica's node in the tree; it exists.
        delay_s: how long to wait when another candidate has applied more.
    """

    def __init__(self, host: Host, tree: Tree, path: str, node_id: str, address: str, *, delay_s: float) -> None:
        self._host = host
        self._tree = tree
        self._leader_path = f"{path}/leader"
        self._candidate_path = f"{path}/candidates/{node_id}"
        self._path = path
        self._node_id = node_id
        self._address = address
        self._delay_s = delay_s
        self._chance = host.entropy.stream(f"replica.election.{path}")
        self._reported: int | None = None

    async def report(self, position: int) -> None:
        """Stand as a candidate, or tell how far this copy is."""
        if self._reported == position:
            return
        data = encode_candidate(Candidate(self._node_id, self._address, position))
        try:
            stat = await self._tree.exists(self._candidate_path)
            if stat is not None and stat.ephemeral_owner != self._tree.session_id:
                # Left by this node's former life, whose session has not been declared dead yet.
                await self._tree.delete(self._candidate_path)
                stat = None
            if stat is None:
                await self._tree.create(self._candidate_path, data, ephemeral=True, parents=True)
            else:
                await self._tree.set(self._candidate_path, data)
        except (NodeExists, NoNode):
            return  # It changed under our hands; the next report finds out.
        self._reported = position

    async def withdraw(self) -> None:
        """Stand no more, and give up the leader's sign if it is ours."""
        self._reported = None
        with suppress(NoNode):
            await self._tree.delete(self._candidate_path)
        await self.resign()

    async def resign(self) -> None:
        """Take away the leader's sign if it is ours."""
        try:
            _, stat = await self._tree.get(self._leader_path)
            if stat.ephemeral_owner == self._tree.session_id:
                await self._tree.delete(self._leader_path, stat.version)
        except (NoNode, BadVersion):
            return

    async def leader(self) -> Candidate | None:
        return await leader_of(self._tree, self._path)

    async def elected(self, position: Callable[[], int]) -> None:
        """Return when this node should take over: nobody leads, and it was first to put up its sign.

        Args:
            position: tells how far this copy is by now.
        """
        watch = self._tree.watch(self._leader_path)
        try:
            while True:
                stat = await self._tree.exists(self._leader_path)
                if stat is not None and stat.ephemeral_owner == self._tree.session_id:
                    return
                if stat is not None:
                    await watch.changed()
                    continue
                await self._let_others_first(position())
                try:
                    sign = encode_candidate(Candidate(self._node_id, self._address, position()))
                    await self._tree.create(self._leader_path, sign, ephemeral=True)
                except NodeExists:
                    continue
                return
        finally:
            watch.close()

    async def lost(self) -> None:
        """Return when the leader's sign is not ours."""
        watch = self._tree.watch(self._leader_path)
        try:
            while True:
                stat = await self._tree.exists(self._leader_path)
                if stat is None or stat.ephemeral_owner != self._tree.session_id:
                    return
                await watch.changed()
        finally:
            watch.close()

    async def _let_others_first(self, position: int) -> None:
        delay_s = self._chance.random() * _SMALL_DELAY_S
        others = await candidates_of(self._tree, self._path)
        if any(other.position > position for other in others if other.node_id != self._node_id):
            delay_s += self._delay_s
        await sleep(self._host.clock, delay_s)
