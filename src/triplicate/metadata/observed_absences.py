"""How long auditors have seen lost bookies absent, so that the next auditor does not count the delay from its own election.

The node is ``/triplicate/<INSTANCEID>/absences``: JSON with ``v`` (1), ``time_ms``, when it was written, and ``absent_s``, the seconds
that each lost bookie was seen absent. The seconds come from monotonic clocks, and the time between two auditors does not count. So a
clock that is wrong, or a cluster that was stopped, makes no bookie look absent for longer. The auditor writes the node; of two, the last
one counts, since it is a hint that only the delay of an audit depends on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from triplicate.errors import FormatError, NodeExists, NoNode
from triplicate.metadata.core.own_paths import absences_path
from triplicate.metadata.core.tree import Tree
from triplicate.metadata.retries import retried
from triplicate.runtime import Host

FORMAT = 1


@dataclass(frozen=True, slots=True)
class ObservedAbsences:
    """The absences that the last auditor has seen.

    Args:
        time_ms: when it wrote this, in milliseconds since the epoch.
        absent_s: the seconds that each lost bookie was seen absent.
    """

    time_ms: int
    absent_s: Mapping[str, float]


def encode_absences(absences: ObservedAbsences) -> bytes:
    """The node's bytes."""
    absent_s = {bookie_id: round(seconds, 1) for bookie_id, seconds in absences.absent_s.items()}
    return json.dumps({"v": FORMAT, "time_ms": absences.time_ms, "absent_s": absent_s}, sort_keys=True, separators=(",", ":")).encode()


def decode_absences(data: bytes) -> ObservedAbsences:
    """Raises FormatError: the data is not such a record, or was written by a newer release."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise FormatError(f"observed absences: format {fields['v']}, this release knows {FORMAT}")
        found = {str(bookie_id): float(seconds) for bookie_id, seconds in fields["absent_s"].items()}
        if not all(math.isfinite(seconds) and seconds >= 0 for seconds in found.values()):
            raise FormatError("observed absences: an absence is no number of seconds")
        return ObservedAbsences(int(fields["time_ms"]), found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"observed absences cannot be understood: {error!r}") from error


class AbsenceRecord:
    """The record of one cluster.

    Args:
        root: Triplicate's root of the cluster.
    """

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        self._tree = tree
        self._host = host
        self._path = absences_path(root)

    async def read(self) -> ObservedAbsences | None:
        """The record, or None. Raises FormatError."""
        try:
            data, _ = await retried(self._host, lambda: self._tree.get(self._path))
        except NoNode:
            return None
        return decode_absences(data)

    async def write(self, absences: ObservedAbsences) -> None:
        """Replace the record; delete it if no bookie is absent."""
        if not absences.absent_s:
            try:
                await retried(self._host, lambda: self._tree.delete(self._path))
            except NoNode:
                return
            return
        data = encode_absences(absences)
        try:
            await retried(self._host, lambda: self._tree.create(self._path, data, parents=True))
        except NodeExists:
            try:
                await retried(self._host, lambda: self._tree.set(self._path, data))
            except NoNode:
                return  # Another auditor has deleted it; the next write creates it.
