"""Who should lead: candidates and the leader's sign in the metadata.

This is about liveness only. Two leaders at once would do no harm: the log has one writer, and who takes it over fences the other.
Below the replica's node: ``candidates/<node id>`` and ``leader``, all ephemeral, JSON with node, address and position; a candidate's
node says the state of the copy as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from triplicate.errors import BadVersion, FormatError, NodeExists, NoNode
from triplicate.metadata import DeleteNode, SetData, Tree, TreeOperation, Watch
from triplicate.replica.failure_detector import PeerLoss
from triplicate.runtime import Host, deadline_after, first_of, sleep, timeout_at

FORMAT = 2
FORMAT_WITHOUT_ROLE = 1
"""What earlier releases write, and what the leader's sign still is."""
UNREADABLE = "unreadable"
"""The role of a candidate whose node this release cannot read."""
CANDIDATE_CHECK_S = 5.0
"""How often a candidate that has nothing new to report looks whether its node is still there."""
REASON_LENGTH_MAX = 500
"""Characters of a reason that go into the metadata."""
SILENCE_HOLDS_S = 1.0
"""A conclusion from silence is acted upon within this time or not at all: where the metadata answer later, this node may itself have been
cut off, and a peer speak again.
"""
_SMALL_DELAY_S = 0.02
_UNABLE = frozenset(["diverged", "failed", UNREADABLE])
"""Roles of copies that do not stand for election."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that holds a copy."""

    node_id: str
    address: str
    """Where its clients connect to, host:port."""
    position: int
    role: str = ""
    """The state of its copy: a `Role`'s value, ``failed``, ``unreadable``, or empty where an earlier release does not say."""
    reason: str = ""
    """Why the copy is not served, where it is not."""

    @property
    def serves(self) -> bool:
        """Whether clients can be sent there."""
        return self.role not in _UNABLE


def encode_candidate(candidate: Candidate) -> bytes:
    fields: dict[str, object] = {"node": candidate.node_id, "address": candidate.address, "position": candidate.position}
    if candidate.role:
        fields |= {"v": FORMAT, "role": candidate.role}
        if candidate.reason:
            fields["reason"] = candidate.reason[:REASON_LENGTH_MAX]
    else:
        fields["v"] = FORMAT_WITHOUT_ROLE
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_candidate(data: bytes) -> Candidate:
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        if fields["v"] not in (FORMAT_WITHOUT_ROLE, FORMAT):
            raise ValueError(f"version {fields['v']}; this release knows {FORMAT_WITHOUT_ROLE} and {FORMAT}")
        role = str(fields["role"]) if fields["v"] == FORMAT else ""
        return Candidate(str(fields["node"]), str(fields["address"]), int(fields["position"]), role, str(fields.get("reason", "")))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"a candidate's node cannot be read: {error}") from error


async def leader_of(tree: Tree, path: str) -> Candidate | None:
    """Who leads the replica whose node is `path`, or None."""
    try:
        data, _ = await tree.get(f"{path}/leader")
    except NoNode:
        return None
    return decode_candidate(data)


async def candidate_of(tree: Tree, path: str, node_id: str) -> Candidate | None:
    """One node that holds a copy, or None. A node that cannot be read is shown as such: a later release may have written it."""
    try:
        data, _ = await tree.get(f"{path}/candidates/{node_id}")
    except NoNode:
        return None
    try:
        return decode_candidate(data)
    except FormatError as error:
        return Candidate(node_id, "", 0, UNREADABLE, str(error))


async def candidates_of(tree: Tree, path: str) -> list[Candidate]:
    """All nodes that hold a copy now, by node id; also those whose copies are not served."""
    try:
        names, _ = await tree.children(f"{path}/candidates")
    except NoNode:
        return []
    found = [await candidate_of(tree, path, name) for name in names]
    return [candidate for candidate in found if candidate is not None]


class Election:
    """One node's part in the election of one replica's leader.

    Args:
        path: the replica's node in the tree; it exists.
        delay_s: how long to wait when another candidate has applied more.
        holds_name: whether this process is the one that bears `node_id` in the cluster. Only then it puts up its candidate's node, and
            removes one that another session has left under this name.
        gone: returns when the process at an address has ended or is silent; None leaves that to the end of its session.
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
    ) -> None:
        self._host = host
        self._tree = tree
        self._leader_path = f"{path}/leader"
        self._candidate_path = f"{path}/candidates/{node_id}"
        self._path = path
        self._node_id = node_id
        self._address = address
        self._delay_s = delay_s
        self._holds_name = holds_name
        self._gone = gone
        self._chance = host.entropy.stream(f"replica.election.{path}")
        self._reported: tuple[Candidate, int] | None = None
        self._check_at_s = 0.0
        self._signed_by = 0
        """The session that put up the leader's sign last."""

    async def report(self, position: int, role: str = "", reason: str = "") -> None:
        """Stand as a candidate, or tell how far this copy is and what state it is in."""
        candidate = Candidate(self._node_id, self._address, position, role, reason)
        now_s = self._host.clock.monotonic()
        if self._reported == (candidate, self._tree.session_id) and now_s < self._check_at_s:
            return
        if not self._holds_name():
            return
        data = encode_candidate(candidate)
        try:
            stat = await self._tree.exists(self._candidate_path)
            if stat is not None and stat.ephemeral_owner != self._tree.session_id:
                # Left by this node's former life, whose session has not been declared dead yet.
                await self._tree.delete(self._candidate_path, stat.version)
                stat = None
            if stat is None:
                await self._create_candidate(data)
            elif self._reported is None or self._reported[0] != candidate:
                await self._tree.set(self._candidate_path, data)
        except (NodeExists, NoNode, BadVersion):
            return  # It changed under our hands; the next report finds out.
        self._reported = candidate, self._tree.session_id
        self._check_at_s = now_s + CANDIDATE_CHECK_S

    async def _create_candidate(self, data: bytes) -> None:
        """Raises NoNode when the replica's own node is gone: it must not come back as a parent of this one."""
        try:
            await self._tree.create(self._candidate_path, data, ephemeral=True)
        except NoNode:
            with suppress(NodeExists):
                await self._tree.create(f"{self._path}/candidates")
            await self._tree.create(self._candidate_path, data, ephemeral=True)

    async def withdraw(self) -> None:
        """Stand no more, and give up the leader's sign if it is ours."""
        self._reported = None
        with suppress(NoNode, BadVersion):
            stat = await self._tree.exists(self._candidate_path)
            if stat is not None and stat.ephemeral_owner == self._tree.session_id:
                await self._tree.delete(self._candidate_path, stat.version)
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

    async def leaders_position(self) -> int | None:
        """How far the leader has told that it is; None where nobody leads."""
        sign = await self.leader()
        leader = None if sign is None else await candidate_of(self._tree, self._path, sign.node_id)
        return None if leader is None else leader.position

    async def elected(self, position: Callable[[], int], handicap_s: float = 0.0) -> None:
        """Return when this node should take over: nobody leads, and it was first to put up its sign.

        Args:
            position: tells how far this copy is by now.
            handicap_s: how much longer to leave the first word to other candidates, if there are any.
        """
        watch = self._tree.watch(self._leader_path)
        departed = ""
        try:
            while True:
                try:
                    data, stat = await self._tree.get(self._leader_path)
                except NoNode:
                    await self._let_others_first(position(), handicap_s, departed)
                    if await self.put_up_sign(position()):
                        return
                    continue
                if stat.ephemeral_owner == self._tree.session_id:
                    return
                sign = _read_sign(data)
                loss = await self._loss_of(sign, watch)
                # It may have come back since, or changed.
                departed = sign.node_id if loss is not None and await self._depose(sign, stat.ephemeral_owner, loss) else ""
        finally:
            watch.close()

    async def _loss_of(self, sign: Candidate, watch: Watch) -> PeerLoss | None:
        """Wait until another session's sign has changed (None), or its process is known to have ended or to hang, which its session
        outlives for some seconds.
        """
        if sign.node_id == self._node_id and self._holds_name():
            return PeerLoss()  # Of this node's former life, as one process bears the name at a time.
        if self._gone is None:
            await watch.changed()
            return None
        _, loss = await first_of([_changed(watch), self._gone(sign.address)], name="leader")
        return loss

    async def _depose(self, sign: Candidate, session_id: int, loss: PeerLoss) -> bool:
        """Take a lost leader's sign down; False where that could not be done while a silence was still one."""
        try:
            async with timeout_at(deadline_after(self._host.clock, SILENCE_HOLDS_S if loss.silent else None)):
                _, is_down = await first_of([self._take_down(sign, session_id, loss), _spoken(loss)], name="depose")
        except TimeoutError:
            is_down = False
        except BaseException:
            loss.retract()
            raise
        if not is_down:
            loss.retract()
            self._host.trace("replica.leader_not_deposed", path=self._path, node=sign.node_id, address=sign.address)
        return is_down

    async def _take_down(self, sign: Candidate, session_id: int, loss: PeerLoss) -> bool:
        """Remove the sign of a session, if it is there still. Should its process go on all the same, the log fences it.

        Returns:
            False where the process was found silent and has written to the metadata since.
        """
        # A server that is behind would show a sign of which another has taken the place.
        await self._tree.sync(self._leader_path)
        is_first = True
        while True:
            guard = await self._guard_of(sign.node_id)
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
                self._host.trace("replica.leader_gone", path=self._path, node=sign.node_id, address=sign.address, why=why)
                return True

    async def _guard_of(self, node_id: str) -> list[TreeOperation]:
        """A change that only one of those can make who take the same sign down. Every sign is at version 0, so that the version alone would
        let a late one take down its successor; the candidate's node of the process is another version with each taking down.
        """
        path = f"{self._path}/candidates/{node_id}"
        try:
            data, stat = await self._tree.get(path)
        except NoNode:
            return []
        return [SetData(path, data, stat.version)]

    async def put_up_sign(self, position: int) -> bool:
        """Put up the leader's sign; False where another's is there."""
        sign = encode_candidate(Candidate(self._node_id, self._address, position))
        try:
            await self._tree.create(self._leader_path, sign, ephemeral=True)
        except NodeExists:
            return False
        self._signed_by = self._tree.session_id
        return True

    async def put_up_sign_again(self, position: int) -> bool:
        """Put up the sign that went with a session; False where another's is there, or where it was taken away within this session:
        then somebody wants another leader.
        """
        return self._signed_by != self._tree.session_id and await self.put_up_sign(position)

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

    async def _let_others_first(self, position: int, handicap_s: float, departed: str) -> None:
        """
        Args:
            departed: the node whose process has ended, though its candidate's node may be there still; or empty.
        """
        delay_s = self._chance.random() * _SMALL_DELAY_S
        found = await candidates_of(self._tree, self._path)
        others = [other for other in found if other.node_id not in (self._node_id, departed) and other.serves]
        if any(other.position > position for other in others):
            delay_s += self._delay_s
        if others:
            delay_s += handicap_s
        await sleep(self._host.clock, delay_s)


def _read_sign(data: bytes) -> Candidate:
    """What the leader's sign says; of one that cannot be read, that it is somebody's."""
    try:
        return decode_candidate(data)
    except FormatError:
        return Candidate("", "", 0)


async def _spoken(loss: PeerLoss) -> bool:
    await loss.spoken()
    return False


async def _changed(watch: Watch) -> None:
    await watch.changed()
