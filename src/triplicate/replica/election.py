"""Leader election: candidates' nodes and the leader's node in the metadata.

The election is needed for liveness only. Two leaders at once do no harm: the log has one writer, and a node that takes it over fences the
other. Below the replica's node are ``candidates/<node id>`` and ``leader``, all ephemeral, with node, address and position as
JSON. A candidate's node also contains the state of its copy. ``handover``, ephemeral as well, is the request that another node lead: JSON
with ``v`` (1) and ``node``. It exists while the requesting process waits. The leader gives way to that node, and other candidates let it
be first.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from triplicate.errors import BadVersion, ConnectionLost, FormatError, NodeExists, NoNode
from triplicate.metadata import DeleteNode, SetData, Stat, Tree, TreeOperation, Watch, delete_of_session, is_beside_leading_server
from triplicate.replica.failure_detector import PeerLoss
from triplicate.replica.replica_entries import names_beneath
from triplicate.runtime import Host, deadline_after, first_of, sleep, timeout_at

FORMAT = 2
FORMAT_WITHOUT_ROLE = 1
"""The format of earlier releases, and of the leader's node."""
UNREADABLE = "unreadable"
"""The role of a candidate whose node this release cannot read."""
CANDIDATE_CHECK_S = 5.0
"""Interval at which a candidate without a new report checks that its node exists."""
REASON_LENGTH_MAX = 500
"""Length limit of a reason in the metadata, characters."""
SILENCE_HOLDS_S = 1.0
"""A silent leader is deposed within this time or not at all. If the metadata service answers later, this node may have been cut off itself,
and the leader may answer again.
"""
HANDOVER_DELAY_S = 2.0
"""Delay of a candidate in favour of the node that was requested as the leader."""
BESIDE_LEADER_DELAY_S = 0.1
"""Delay of a candidate on the machine of the metadata service's leader, in favour of others. It is longer than a node needs to notice that
there is no leader.
"""
RECHECK_S = 0.2
"""Interval at which a position, and the permission to lead, are read again."""
FORMAT_OF_HANDOVER = 1
_SMALL_DELAY_S = 0.02
_UNABLE = frozenset(["diverged", "failed", UNREADABLE])
"""Roles of copies that do not stand for election."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that holds a copy."""

    node_id: str
    address: str
    """host:port for clients."""
    position: int
    role: str = ""
    """The state of its copy: a value of `Role`, ``failed``, ``unreadable``, or empty for a node of an earlier release."""
    reason: str = ""
    """Why the copy is not served; empty if it is."""
    resp_address: str = ""
    """host:port for clients of Redis; empty if the node serves none."""

    @property
    def serves(self) -> bool:
        """Whether clients can use this copy."""
        return self.role not in _UNABLE


def encode_candidate(candidate: Candidate) -> bytes:
    """The content of a candidate's node or of the leader's node."""
    fields: dict[str, object] = {"node": candidate.node_id, "address": candidate.address, "position": candidate.position}
    if candidate.resp_address:
        fields["resp"] = candidate.resp_address
    if candidate.role:
        fields |= {"v": FORMAT, "role": candidate.role}
        if candidate.reason:
            fields["reason"] = candidate.reason[:REASON_LENGTH_MAX]
    else:
        fields["v"] = FORMAT_WITHOUT_ROLE
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_candidate(data: bytes) -> Candidate:
    """Decode the content of a candidate's node or of the leader's node. Raises FormatError."""
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        if fields["v"] not in (FORMAT_WITHOUT_ROLE, FORMAT):
            raise ValueError(f"version {fields['v']}; this release knows {FORMAT_WITHOUT_ROLE} and {FORMAT}")
        role = str(fields["role"]) if fields["v"] == FORMAT else ""
        node_id, address, position = str(fields["node"]), str(fields["address"]), int(fields["position"])
        return Candidate(node_id, address, position, role, str(fields.get("reason", "")), str(fields.get("resp", "")))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"a candidate's node cannot be read: {error}") from error


async def leader_of(tree: Tree, path: str) -> Candidate | None:
    """The leader of the replica with the node `path`, or None. Raises FormatError if its node cannot be read."""
    try:
        data, _ = await tree.get(f"{path}/leader")
    except NoNode:
        return None
    return decode_candidate(data)


async def candidate_of(tree: Tree, path: str, node_id: str) -> Candidate | None:
    """The candidate of one node, or None. If it cannot be read, because a later release wrote it, its role is `UNREADABLE`."""
    try:
        data, _ = await tree.get(f"{path}/candidates/{node_id}")
    except NoNode:
        return None
    try:
        return decode_candidate(data)
    except FormatError as error:
        return Candidate(node_id, "", 0, UNREADABLE, str(error))


async def candidates_of(tree: Tree, path: str) -> list[Candidate]:
    """All candidates in the order of their node ids, also those whose copies are not served."""
    candidates = [await candidate_of(tree, path, name) for name in await names_beneath(tree, f"{path}/candidates")]
    return [candidate for candidate in candidates if candidate is not None]


def encode_handover(node_id: str) -> bytes:
    """The content of a request that a node lead."""
    return json.dumps({"v": FORMAT_OF_HANDOVER, "node": node_id}, sort_keys=True, separators=(",", ":")).encode()


async def requested_leader(tree: Tree, path: str) -> str:
    """The id of the node that is to lead the replica with the node `path`. Empty without a request, or if it cannot be read."""
    try:
        data, _ = await tree.get(f"{path}/handover")
        fields = json.loads(data)
        return str(fields["node"]) if fields["v"] == FORMAT_OF_HANDOVER else ""
    except (NoNode, ValueError, KeyError, TypeError):
        return ""


class Election:
    """One node's part in the election of one replica's leader.

    Args:
        path: the replica's node in the tree; it exists.
        node_id, address: of this node; the address is for clients.
        delay_s: time to wait if another candidate has applied more of the log.
        holds_name: whether this process holds `node_id` in the cluster. Only such a process creates its candidate's node, and deletes one
            that another session has left with this name.
        gone: waits until the process at an address has ended or is silent. None: only the end of its session counts.
        lead_delay_s: returns the additional time to wait if there are other candidates, or None while this node must not lead.
        resp_address: of this node, for clients of Redis; empty if it serves none.
        could_lead: returns whether this node could lead now. It is asked before a silent leader is deposed: the silent one may be this
            node, cut off from the others. None: it is not known.
    """

    def __init__(
        self,
        host: Host,
        tree: Tree,
        path: str,
        node_id: str,
        address: str,
        *,
        delay_s: float,
        holds_name: Callable[[], bool] = lambda: True,
        gone: Callable[[str], Coroutine[Any, Any, PeerLoss]] | None = None,
        lead_delay_s: Callable[[], float | None] = lambda: 0.0,
        resp_address: str = "",
        could_lead: Callable[[], Coroutine[Any, Any, bool]] | None = None,
    ) -> None:
        self._host = host
        self._tree = tree
        self._leader_path = f"{path}/leader"
        self._candidate_path = f"{path}/candidates/{node_id}"
        self._path = path
        self._node_id = node_id
        self._address = address
        self._resp_address = resp_address
        self._delay_s = delay_s
        self._holds_name = holds_name
        self._gone = gone
        self._lead_delay_s = lead_delay_s
        self._could_lead = could_lead
        self._chance = host.entropy.stream(f"replica.election.{path}")
        self._reported: tuple[Candidate, int] | None = None
        self._check_at_s = 0.0
        self._leading_session = 0
        """Id of the session in which this node last created the leader's node."""

    async def report(self, position: int, role: str = "", reason: str = "") -> None:
        """Create or update this candidate's node with the position and the state of its copy."""
        candidate = Candidate(self._node_id, self._address, position, role, reason, self._resp_address)
        now_s = self._host.clock.monotonic()
        if self._reported == (candidate, self._tree.session_id) and now_s < self._check_at_s:
            return
        if not self._holds_name():
            return
        await is_beside_leading_server(self._tree)  # The answer is kept until an election needs it.
        data = encode_candidate(candidate)
        try:
            stat = await self._tree.exists(self._candidate_path)
            if stat is not None and stat.ephemeral_owner != self._tree.session_id:
                # An earlier process of this node has left it; that session has not expired yet.
                await self._tree.delete(self._candidate_path, stat.version)
                stat = None
            if stat is None:
                await self._create_candidate(data)
            elif self._reported is None or self._reported[0] != candidate:
                await self._tree.set(self._candidate_path, data)
        except (NodeExists, NoNode, BadVersion):
            return  # The node has just been changed; the next report tries again.
        self._reported = candidate, self._tree.session_id
        self._check_at_s = now_s + CANDIDATE_CHECK_S

    async def _create_candidate(self, data: bytes) -> None:
        """Create the candidate's node. Raises NoNode if the replica's node was deleted, which must not be recreated as a parent."""
        try:
            await self._tree.create(self._candidate_path, data, ephemeral=True)
        except NoNode:
            with suppress(NodeExists):
                await self._tree.create(f"{self._path}/candidates")
            await self._tree.create(self._candidate_path, data, ephemeral=True)

    async def withdraw(self) -> None:
        """Delete this candidate's node, and the leader's node if this session holds it."""
        self._reported = None
        await delete_of_session(self._tree, self._candidate_path)
        await self.resign()

    async def resign(self) -> None:
        """Delete the leader's node if this session holds it."""
        await delete_of_session(self._tree, self._leader_path)

    async def leader(self) -> Candidate | None:
        """The present leader, or None. Raises FormatError."""
        return await leader_of(self._tree, self._path)

    async def leader_position(self) -> int | None:
        """The position that the leader has reported last; None without a leader."""
        leader = await self.leader()
        candidate = None if leader is None else await candidate_of(self._tree, self._path, leader.node_id)
        return None if candidate is None else candidate.position

    async def elected(self, position: Callable[[], int], handicap_s: float = 0.0) -> None:
        """Wait until this node should take over: there was no leader, and this node has created the leader's node.

        Args:
            position: returns the present position of this copy.
            handicap_s: additional time to wait if there are other candidates.
        """
        watch = self._tree.watch(self._leader_path)
        departed = ""
        try:
            while True:
                try:
                    data, stat = await self._tree.get(self._leader_path)
                except NoNode:
                    delay_s = self._lead_delay_s()
                    if delay_s is None:
                        await first_of([_changed(watch), sleep(self._host.clock, RECHECK_S)], name="permission to lead")
                        continue
                    await self._wait_for_others(position(), handicap_s + delay_s, departed)
                    if self._lead_delay_s() is not None and await self.create_leader_node(position()):
                        return
                    continue
                if stat.ephemeral_owner == self._tree.session_id:
                    return
                leader = _read_leader(data)
                loss = await self._wait_for_loss(leader, watch)
                # The node may have been recreated or changed since.
                departed = leader.node_id if loss is not None and await self._depose(leader, stat.ephemeral_owner, loss) else ""
        finally:
            watch.close()

    async def _wait_for_loss(self, leader: Candidate, watch: Watch) -> PeerLoss | None:
        """Wait until the leader's node of another session has changed, or the leader's process has ended or is silent.

        The session of such a process expires only seconds later.

        Returns:
            None if the node has changed.
        """
        if leader.node_id == self._node_id and self._holds_name():
            return PeerLoss()  # An earlier process of this node created it; one process holds the name at a time.
        if self._gone is None:
            await watch.changed()
            return None
        losses: list[PeerLoss] = []
        try:
            await first_of([_changed(watch), _noting(self._gone(leader.address), losses)], name="leader")
        except BaseException:
            for loss in losses:
                loss.retract()
            raise
        return losses[0] if losses else None  # Also if the node has changed at the same time: `_depose` compares the sessions.

    async def _depose(self, leader: Candidate, session_id: int, loss: PeerLoss) -> bool:
        """Delete the node of a lost leader.

        Returns:
            False if a silent leader has answered, this node could not lead in its place, or that was not known in time.
        """
        try:
            async with timeout_at(deadline_after(self._host.clock, SILENCE_HOLDS_S if loss.silent else None)):
                _, is_down = await first_of([self._take_down(leader, session_id, loss), _spoken(loss)], name="depose")
        except TimeoutError:
            is_down = False
        except BaseException:
            loss.retract()
            raise
        if not is_down:
            loss.retract()
            self._host.trace("replica.leader_not_deposed", path=self._path, node=leader.node_id, address=leader.address)
        return is_down

    async def _take_down(self, leader: Candidate, session_id: int, loss: PeerLoss) -> bool:
        """Delete the node of a lost leader, unless this node could not lead in its place."""
        if loss.silent and not await self._could_take_over():
            self._host.trace("replica.too_few_bookies", path=self._path, leader=leader.node_id)
            await sleep(self._host.clock, SILENCE_HOLDS_S)  # The question is not asked again before another silence.
            return False
        return await self._delete_leader_node(leader, session_id, loss)

    async def _could_take_over(self) -> bool:
        return self._could_lead is None or await self._could_lead()

    async def _delete_leader_node(self, leader: Candidate, session_id: int, loss: PeerLoss) -> bool:
        """Delete the leader's node of a session if it still exists. If its process continues, the next writer of the log fences it.

        Returns:
            False if the process was silent and has written to the metadata since.
        """
        # A metadata server that is behind would return a node that was replaced.
        await self._tree.sync(self._leader_path)
        is_first = True
        while True:
            guard = await self._guard_of(leader.node_id)
            try:
                _, stat = await self._tree.get(self._leader_path)
            except NoNode:
                return True
            if stat.ephemeral_owner != session_id:
                return True
            if loss.silent and not is_first:
                return False
            is_first = False
            with suppress(NoNode, BadVersion):
                await self._tree.multi([*guard, DeleteNode(self._leader_path, stat.version)])
                why = "silent" if loss.silent else "ended"
                self._host.trace("replica.leader_gone", path=self._path, node=leader.node_id, address=leader.address, why=why)
                return True

    async def _guard_of(self, node_id: str) -> list[TreeOperation]:
        """An operation that succeeds only for one of the nodes that depose the same leader.

        Every leader's node has version 0. With that version alone, a node that is late could delete the successor's node. The version of
        the candidate's node changes with each deposition.
        """
        path = f"{self._path}/candidates/{node_id}"
        try:
            data, stat = await self._tree.get(path)
        except NoNode:
            return []
        return [SetData(path, data, stat.version)]

    async def create_leader_node(self, position: int) -> bool:
        """Create the leader's node. Returns False if another session holds it."""
        data = encode_candidate(Candidate(self._node_id, self._address, position, resp_address=self._resp_address))
        try:
            await self._tree.create(self._leader_path, data, ephemeral=True)
        except NodeExists:
            return False
        self._leading_session = self._tree.session_id
        return True

    async def recreate_leader_node(self, position: int) -> bool:
        """Recreate the leader's node that expired with a session.

        Returns:
            False if another session holds it, or if it was deleted within this session, because this leader was deposed.
        """
        return self._leading_session != self._tree.session_id and await self.create_leader_node(position)

    async def lost(self, in_doubt: asyncio.Event, limit_s: float) -> None:
        """Wait until this session does not hold the leader's node.

        Args:
            in_doubt: when it is set, the node is read again.
            limit_s: for each reading, in seconds.

        Raises:
            ConnectionLost: the metadata have not answered in time.
        """
        watch = self._tree.watch(self._leader_path)
        try:
            while True:
                in_doubt.clear()
                stat = await self._leader_stat(limit_s)
                if stat is None or stat.ephemeral_owner != self._tree.session_id:
                    return
                await first_of([_changed(watch), _is_set(in_doubt)], name="leader's node")
        finally:
            watch.close()

    async def _leader_stat(self, limit_s: float) -> Stat | None:
        try:
            async with timeout_at(deadline_after(self._host.clock, limit_s)):
                return await self._tree.exists(self._leader_path)
        except TimeoutError:
            raise ConnectionLost(f"{self._leader_path}: the metadata have not answered within {limit_s:g} s") from None

    async def _wait_for_others(self, position: int, handicap_s: float, departed: str) -> None:
        """Wait so that candidates that have applied more of the log come first.

        Args:
            departed: the id of a node whose process has ended, although its candidate's node may still exist; or empty.
        """
        delay_s = self._chance.random() * _SMALL_DELAY_S
        candidates = await candidates_of(self._tree, self._path)
        others = [other for other in candidates if other.node_id not in (self._node_id, departed) and other.serves]
        if any(other.position > position for other in others):
            delay_s += self._delay_s
        requested = await requested_leader(self._tree, self._path)
        if requested == self._node_id:
            delay_s = 0.0
        elif any(other.node_id == requested for other in others):
            delay_s += HANDOVER_DELAY_S
        elif others and await is_beside_leading_server(self._tree):
            delay_s += BESIDE_LEADER_DELAY_S
        if others:
            delay_s += handicap_s
        await sleep(self._host.clock, delay_s)

    async def asked_to_hand_over(self, position: Callable[[], int]) -> str:
        """Wait until this leader should give way to another node: one was requested, and its copy has reached the position that this copy
        had when the request was seen.

        Args:
            position: returns the present position of this copy.

        Returns:
            The id of the other node.
        """
        watch = self._tree.watch(f"{self._path}/handover")
        requested, reached = "", 0
        try:
            while True:
                before, requested = requested, await requested_leader(self._tree, self._path)
                if requested in ("", self._node_id):
                    await watch.changed()
                    continue
                if requested != before:
                    reached = position()
                candidate = await candidate_of(self._tree, self._path, requested)
                if candidate is not None and candidate.serves and candidate.position >= reached:
                    return requested
                await first_of([_changed(watch), sleep(self._host.clock, RECHECK_S)], name="handover")
        finally:
            watch.close()


def _read_leader(data: bytes) -> Candidate:
    """Decode the leader's node. If it cannot be read, the leader is unknown."""
    try:
        return decode_candidate(data)
    except FormatError:
        return Candidate("", "", 0)


async def _spoken(loss: PeerLoss) -> bool:
    await loss.spoken()
    return False


async def _noting(gone: Coroutine[Any, Any, PeerLoss], losses: list[PeerLoss]) -> None:
    losses.append(await gone)


async def _changed(watch: Watch) -> None:
    await watch.changed()


async def _is_set(event: asyncio.Event) -> None:
    await event.wait()
