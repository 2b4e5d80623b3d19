"""Notes of replication workers about marked ledgers that they could not repair.

The node is ``/triplicate/<INSTANCEID>/repairs/<ledger id>``: JSON with ``v`` (1), ``reason``, ``worker`` and ``time_ms``. BookKeeper's mark
has no place for a reason, and its tools refuse marks with fields that they do not know. The mark alone decides whether a ledger lacks
copies; a note without a mark means nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from triplicate.errors import FormatError, NodeExists, NoNode
from triplicate.metadata.core.own_paths import repair_note_path, repair_notes_path
from triplicate.metadata.core.tree import Tree
from triplicate.metadata.repair_progress import RepairProgressRecords
from triplicate.metadata.retries import retried
from triplicate.runtime import Host

NOTE_FORMAT = 1
REASON_MAX = 2000
"""Characters of a reason that are kept."""


@dataclass(frozen=True, slots=True)
class RepairNote:
    """The end of the last repair of a ledger that did not end well.

    Args:
        reason: why the ledger still lacks copies.
        worker: the name of the worker.
        time_ms: when a worker first found this reason, in ms since the epoch.
    """

    reason: str
    worker: str
    time_ms: int


class RepairNotes:
    """The notes of one cluster.

    Args:
        root: Triplicate's root of the cluster.

    Attributes:
        progress: of the repairs that run.
    """

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        self._tree = tree
        self._host = host
        self._root = root
        self.progress = RepairProgressRecords(tree, host, root)

    async def record(self, ledger_id: int, reason: str, worker: str) -> None:
        """Write the note of a ledger. A note with the same reason is left as it is."""
        reason = reason[:REASON_MAX]
        path = repair_note_path(self._root, ledger_id)
        try:
            known = await self.get(ledger_id)
        except FormatError:
            known = None
        if known is not None and known.reason == reason:
            return
        facts = {"reason": reason, "time_ms": self._host.clock.wall_us() // 1000, "v": NOTE_FORMAT, "worker": worker}
        data = json.dumps(facts, separators=(",", ":")).encode()
        try:
            await retried(self._host, lambda: self._tree.create(path, data, parents=True))
        except NodeExists:
            try:
                await retried(self._host, lambda: self._tree.set(path, data))
            except NoNode:
                return  # Another worker has repaired the ledger since.

    async def get(self, ledger_id: int) -> RepairNote | None:
        """The note of a ledger, or None.

        Raises:
            FormatError: it cannot be decoded.
        """
        path = repair_note_path(self._root, ledger_id)
        try:
            data, _ = await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return None
        return decode_repair_note(data)

    async def clear(self, ledger_id: int) -> None:
        """Delete the note of a ledger, if there is one."""
        path = repair_note_path(self._root, ledger_id)
        try:
            await retried(self._host, lambda: self._tree.delete(path))
        except NoNode:
            return

    async def ledger_ids(self) -> list[int]:
        """The ledgers that have a note, ascending."""
        try:
            names, _ = await retried(self._host, lambda: self._tree.children(repair_notes_path(self._root)))
        except NoNode:
            return []
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def decode_repair_note(data: bytes) -> RepairNote:
    """Decode a note. Fields of later releases are ignored.

    Raises:
        FormatError: it is no note, or of an unknown version.
    """
    try:
        facts = json.loads(data)
        if facts["v"] == NOTE_FORMAT:
            return RepairNote(str(facts["reason"]), str(facts["worker"]), int(facts["time_ms"]))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"not a note of a repair: {data[:100]!r} ({error})") from None
    raise FormatError(f"a note of a repair has version {facts['v']}; known is {NOTE_FORMAT} only")
