"""The freeze of ensemble changes: an operator's request that writers keep the bookies that their ledgers have.

The node is ``/triplicate/<INSTANCEID>/frozen-ensembles``: JSON with ``v`` (1), ``reason``, ``by``, ``since_ms`` and ``until_ms``. A node
that cannot be decoded, as one of a later format, freezes without an end, so that a client obeys it. The node is read before each change
of an ensemble, never for an entry. Clients of Apache's do not read it. Source of the idea: BookKeeper `disableEnsembleChange`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from triplicate.errors import ArgumentError, NodeExists, NoNode
from triplicate.metadata.core.own_paths import frozen_ensembles_path
from triplicate.metadata.core.tree import Tree
from triplicate.metadata.retries import retried
from triplicate.runtime import Host

FORMAT = 1
FREEZE_S_MAX = 7 * 86400.0
"""The longest freeze, in seconds."""
REASON_MAX = 1000
"""The longest reason, in characters."""


@dataclass(frozen=True, slots=True)
class EnsembleFreeze:
    """A freeze.

    Attributes:
        by: user and machine of the operator.
        since_ms, until_ms: milliseconds since the epoch; `until_ms` None: without an end.
    """

    reason: str
    by: str
    since_ms: int
    until_ms: int | None

    def is_active(self, now_ms: int) -> bool:
        """Whether it has not expired."""
        return self.until_ms is None or now_ms < self.until_ms

    @property
    def text(self) -> str:
        """Its end, reason and operator, for messages."""
        if self.until_ms is None:
            return self.reason
        until = datetime.fromtimestamp(self.until_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"until {until} by {self.by}: {self.reason}"


def encode_freeze(freeze: EnsembleFreeze) -> bytes:
    """The node's bytes."""
    fields = {"v": FORMAT, "reason": freeze.reason, "by": freeze.by, "since_ms": freeze.since_ms, "until_ms": freeze.until_ms}
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_freeze(data: bytes) -> EnsembleFreeze:
    """The freeze in a node. One that cannot be decoded has no end."""
    try:
        fields = json.loads(data)
        if fields["v"] == FORMAT:
            return EnsembleFreeze(str(fields["reason"]), str(fields["by"]), int(fields["since_ms"]), int(fields["until_ms"]))
        problem = f"the freeze has format {fields['v']}, and this release knows {FORMAT}"
    except (ValueError, KeyError, TypeError) as error:
        problem = f"the freeze cannot be decoded: {error!r}"
    return EnsembleFreeze(problem, "", 0, None)


class EnsembleFreezes:
    """The freeze of one cluster.

    Args:
        root: Triplicate's root of the cluster.
    """

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        self._tree = tree
        self._host = host
        self._path = frozen_ensembles_path(root)

    async def read(self) -> EnsembleFreeze | None:
        """The active freeze, or None."""
        try:
            data, _ = await retried(self._host, lambda: self._tree.get(self._path))
        except NoNode:
            return None
        freeze = decode_freeze(data)
        return freeze if freeze.is_active(self._now_ms()) else None

    async def begin(self, reason: str, by: str, duration_s: float) -> EnsembleFreeze:
        """Freeze ensembles from now on; replaces the freeze so far.

        Raises:
            ArgumentError: the reason is empty or too long, or the duration is not above 0 and at most `FREEZE_S_MAX`.
        """
        if not reason.strip() or len(reason) > REASON_MAX:
            raise ArgumentError(f"a freeze needs a reason of 1 to {REASON_MAX} characters")
        if not 0 < duration_s <= FREEZE_S_MAX:
            raise ArgumentError(f"a freeze lasts above 0 and at most {FREEZE_S_MAX:g} s, not {duration_s:g} s")
        now_ms = self._now_ms()
        freeze = EnsembleFreeze(reason.strip(), by, now_ms, now_ms + round(duration_s * 1000))
        data = encode_freeze(freeze)
        while True:
            try:
                await retried(self._host, lambda: self._tree.create(self._path, data, parents=True))
            except NodeExists:
                try:
                    await retried(self._host, lambda: self._tree.set(self._path, data))
                except NoNode:
                    continue  # Another operator has ended it in between.
            return freeze

    async def end(self) -> bool:
        """End the freeze; False if there is none. An expired one is removed and counts as none."""
        was_active = await self.read() is not None
        try:
            await retried(self._host, lambda: self._tree.delete(self._path))
        except NoNode:
            return False
        return was_active

    def _now_ms(self) -> int:
        return self._host.clock.wall_us() // 1000
