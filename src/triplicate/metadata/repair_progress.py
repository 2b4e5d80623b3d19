"""How far the repair of a ledger is, and how fast, for operators. Its worker writes it beside its lock, at intervals.

The node is ``/triplicate/<INSTANCEID>/progress/<ledger id>``: JSON with ``v`` (1), ``worker``, ``since_ms``, ``time_ms``, ``entries``,
``bytes``, ``expected_entries`` (null if it is not known), ``entries_per_s`` and ``bytes_per_s``. It is ephemeral and ends with its worker.
Nothing is decided by it. BookKeeper's tools refuse locks with fields that they do not know, and its workers write none.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from triplicate.errors import FormatError, NodeExists, NoNode
from triplicate.metadata.core.own_paths import repair_progress_path
from triplicate.metadata.core.tree import Tree
from triplicate.metadata.retries import retried
from triplicate.metadata.session_nodes import delete_of_session
from triplicate.runtime import Host

FORMAT = 1


@dataclass(frozen=True, slots=True)
class RepairProgress:
    """A repair that runs.

    Args:
        worker: the name in its lock.
        since_ms: when it began, in ms since the epoch. time_ms: when this was written. Both by the worker's clock.
        entries, size_bytes: the entries copied so far, and their bytes with headers.
        expected_entries: how many it will have copied in the end, as far as it knows; None if it does not.
        entries_per_s, bytes_per_s: rates of the last seconds.
    """

    worker: str
    since_ms: int
    time_ms: int
    entries: int
    size_bytes: int
    expected_entries: int | None
    entries_per_s: float
    bytes_per_s: float

    @property
    def left_s(self) -> float | None:
        """Time until the end at the present rate, in seconds; None if it is not known."""
        if self.expected_entries is None or self.entries_per_s <= 0:
            return None
        return max(0, self.expected_entries - self.entries) / self.entries_per_s


def encode_repair_progress(progress: RepairProgress) -> bytes:
    """The node's bytes."""
    fields = {
        "v": FORMAT,
        "worker": progress.worker,
        "since_ms": progress.since_ms,
        "time_ms": progress.time_ms,
        "entries": progress.entries,
        "bytes": progress.size_bytes,
        "expected_entries": progress.expected_entries,
        "entries_per_s": round(progress.entries_per_s, 1),
        "bytes_per_s": round(progress.bytes_per_s, 1),
    }
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_repair_progress(data: bytes) -> RepairProgress:
    """Raises FormatError: the data is not such a record, or was written by a newer release."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise FormatError(f"progress of a repair: format {fields['v']}, this release knows {FORMAT}")
        expected = fields["expected_entries"]
        counts = (int(fields["since_ms"]), int(fields["time_ms"]), int(fields["entries"]), int(fields["bytes"]))
        rates = (float(fields["entries_per_s"]), float(fields["bytes_per_s"]))
        if not all(math.isfinite(rate) and rate >= 0 for rate in rates):
            raise FormatError("progress of a repair: a rate is no number")
        return RepairProgress(str(fields["worker"]), *counts, None if expected is None else int(expected), *rates)
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"progress of a repair cannot be understood: {error!r}") from error


class RepairProgressRecords:
    """The records of one cluster.

    Args:
        root: Triplicate's root of the cluster.
    """

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        self._tree = tree
        self._host = host
        self._root = root

    async def get(self, ledger_id: int) -> RepairProgress | None:
        """The record of a ledger, or None. Raises FormatError."""
        path = repair_progress_path(self._root, ledger_id)
        try:
            data, _ = await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return None
        return decode_repair_progress(data)

    async def write(self, ledger_id: int, progress: RepairProgress) -> None:
        """Replace the record of a ledger that the caller has locked.

        One that a dead worker has left ends with its session; the next call makes another. It is not retried: a later one follows.
        """
        path, data = repair_progress_path(self._root, ledger_id), encode_repair_progress(progress)
        try:
            await self._tree.set(path, data)
        except NoNode:
            try:
                await self._tree.create(path, data, ephemeral=True, parents=True)
            except NodeExists:
                return

    async def clear(self, ledger_id: int) -> None:
        """Delete the record of a ledger, if there is one. It is not retried: the session's end deletes it as well."""
        await delete_of_session(self._tree, repair_progress_path(self._root, ledger_id))
