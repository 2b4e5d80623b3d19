"""Requests of operators that a bookie collect garbage, compact its entry logs, or flush now.

The node is ``/triplicate/<INSTANCEID>/upkeep/<bookie id>/<16 hex digits>``, ephemeral: it ends with the session of the command that made
it. It is JSON with ``v`` (1), ``action``, ``force``, ``state`` and, as far as they are known, ``facts`` and ``problem``. The bookie watches
the parent, and changes the node when it begins and when it ends the action.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from triplicate.errors import FormatError, NodeExists, NoNode
from triplicate.metadata.core.bookie_ids import check_bookie_id
from triplicate.metadata.core.own_paths import upkeep_requests_path
from triplicate.metadata.core.tree import Tree, Watch
from triplicate.metadata.retries import retried
from triplicate.runtime import Host

FORMAT = 1
ID_BITS = 64


class UpkeepAction(StrEnum):
    """The action that a bookie is requested to do."""

    GC = "gc"
    COMPACT = "compact"
    FLUSH = "flush"
    STATUS = "status"
    """Nothing: it answers with the state of garbage collection and compaction."""


class UpkeepState(StrEnum):
    """How far a request has come."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class UpkeepRequest:
    """A request, and its answer once it has ended.

    Attributes:
        force: of ``gc``: also compact, regardless of the intervals; of ``compact``: by the threshold of major compaction.
        facts: the answer of the bookie. problem: why it failed.
    """

    action: UpkeepAction
    force: bool = False
    state: UpkeepState = UpkeepState.WAITING
    facts: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether the answer is there."""
        return self.state in (UpkeepState.DONE, UpkeepState.FAILED)


def encode_upkeep(request: UpkeepRequest) -> bytes:
    """The node's bytes."""
    fields: dict[str, Any] = {"v": FORMAT, "action": request.action.value, "force": request.force, "state": request.state.value}
    if request.facts:
        fields["facts"] = dict(request.facts)
    if request.problem:
        fields["problem"] = request.problem
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_upkeep(data: bytes) -> UpkeepRequest:
    """Raises FormatError: the data is no request, or one of a newer release."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise FormatError(f"a request of format {fields['v']}, this release knows {FORMAT}: use the command of the bookie's release")
        facts = fields.get("facts", {})
        return UpkeepRequest(
            UpkeepAction(fields["action"]), fields["force"] is True, UpkeepState(fields["state"]), dict(facts), fields.get("problem", "")
        )
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"not a request for a bookie's upkeep: {error!r}") from error


class UpkeepRequests:
    """The requests of one cluster.

    Args:
        root: Triplicate's root of the cluster.
    """

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        self._tree = tree
        self._host = host
        self._root = root

    async def request(self, bookie_id: str, action: UpkeepAction, *, force: bool = False) -> str:
        """Make a request; returns its name. It ends with this session."""
        name = f"{self._host.entropy.stream('metadata.upkeep').getrandbits(ID_BITS):016x}"
        path, data = self._path(bookie_id, name), encode_upkeep(UpkeepRequest(action, force))
        try:
            await retried(self._host, lambda: self._tree.create(path, data, ephemeral=True, parents=True))
        except NodeExists:
            # An earlier attempt was applied, and its answer was lost.
            return name
        return name

    async def read(self, bookie_id: str, name: str) -> UpkeepRequest | None:
        """A request as it is now; None if it is gone. Raises FormatError."""
        path = self._path(bookie_id, name)
        try:
            data, _ = await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return None
        return decode_upkeep(data)

    async def answer(self, bookie_id: str, name: str, request: UpkeepRequest) -> bool:
        """Replace a request by one with a further state; False if it is gone."""
        path, data = self._path(bookie_id, name), encode_upkeep(request)
        try:
            await retried(self._host, lambda: self._tree.set(path, data))
        except NoNode:
            return False
        return True

    async def withdraw(self, bookie_id: str, name: str) -> None:
        """Remove a request. An action that has begun goes on."""
        path = self._path(bookie_id, name)
        try:
            await retried(self._host, lambda: self._tree.delete(path))
        except NoNode:
            return

    async def names(self, bookie_id: str) -> list[str]:
        """The requests to a bookie, sorted by name."""
        path = upkeep_requests_path(self._root, check_bookie_id(bookie_id))
        try:
            names, _ = await retried(self._host, lambda: self._tree.children(path))
        except NoNode:
            return []
        return sorted(names)

    def watch(self, bookie_id: str, name: str | None = None) -> Watch:
        """Watch all requests to a bookie, or one. The caller closes it."""
        parent = upkeep_requests_path(self._root, check_bookie_id(bookie_id))
        return self._tree.watch(parent if name is None else f"{parent}/{name}")

    def _path(self, bookie_id: str, name: str) -> str:
        return f"{upkeep_requests_path(self._root, check_bookie_id(bookie_id))}/{name}"
