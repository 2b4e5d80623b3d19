"""Incarnations: the number of times a bookie's disks were replaced, and whether their ledgers have been checked since.

A bookie whose disks were lost keeps its id and begins a new incarnation. Until its ledgers have been checked (``visited``), an entry
missing on it proves nothing. The node is ``/triplicate/<INSTANCEID>/incarnations/<bookie id>``: JSON with ``v`` (1), ``incarnation``,
``replaced_ms``, ``visited`` and ``ledger_id_bound``. A bookie without a node is in its first incarnation.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from triplicate.errors import FormatError, NodeExists, NoNode
from triplicate.metadata.core.bookie_ids import check_bookie_id
from triplicate.metadata.core.own_paths import incarnation_path
from triplicate.metadata.core.tree import Stat, Tree
from triplicate.metadata.retries import retried
from triplicate.runtime import Host

FIRST = 1
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One set of disks of a bookie."""

    number: int = FIRST
    replaced_ms: int = 0
    """Time at which the previous disks were given up, in milliseconds since the epoch, by the clock of the process that recorded it."""
    visited: bool = True
    """Whether every ledger that names the bookie has been checked since."""
    ledger_id_bound: int = 0
    """A ledger id drawn at the replacement. Ledgers created since have this id or a greater one, unless a client chose their id."""
    changed_ms: int = 0
    """Time of the last write of the node in milliseconds since the epoch, by the store's clock; not stored in the node."""


def encode_incarnation(value: Incarnation) -> bytes:
    """The node's bytes."""
    fields = {
        "v": _VERSION,
        "incarnation": value.number,
        "replaced_ms": value.replaced_ms,
        "visited": value.visited,
        "ledger_id_bound": value.ledger_id_bound,
    }
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_incarnation(data: bytes, changed_ms: int = 0) -> Incarnation:
    """Raises FormatError: the data is not an incarnation, or was written by a newer release."""
    try:
        fields = json.loads(data)
        if fields["v"] != _VERSION:
            raise FormatError(f"an incarnation of format {fields['v']}, this release knows {_VERSION}: start a newer one")
        bound = int(fields.get("ledger_id_bound", 0))
        return Incarnation(int(fields["incarnation"]), int(fields["replaced_ms"]), bool(fields["visited"]), bound, changed_ms)
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"not a bookie's incarnation: {error!r}") from error


class Incarnations:
    """The incarnations of a cluster's bookies."""

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        """
        Args:
            root: Triplicate's root of the cluster.
        """
        self._tree = tree
        self._host = host
        self._root = root

    async def get(self, bookie_id: str) -> Incarnation:
        """The present incarnation; the first for a bookie whose disks were never replaced.

        Raises:
            FormatError: the node cannot be decoded.
        """
        found = await self._find(bookie_id)
        return found[0] if found is not None else Incarnation()

    async def begin_next(self, bookie_id: str, ledger_id_bound: int) -> Incarnation:
        """Begin a new incarnation after the loss of the disks. It is not visited yet.

        Args:
            ledger_id_bound: a newly generated ledger id.

        Raises:
            BadVersion, NodeExists: another process does the same at this moment.
        """
        found = await self._find(bookie_id)
        number = found[0].number + 1 if found is not None else FIRST + 1
        value = Incarnation(number, self._host.clock.wall_us() // 1000, False, ledger_id_bound)
        path, data = self._path(bookie_id), encode_incarnation(value)
        if found is not None:
            await self._tree.set(path, data, found[1].version)
        else:
            try:
                await retried(self._host, lambda: self._tree.create(path, data, parents=True))
            except NodeExists:
                stored, _ = await self._tree.get(path)
                if stored != data:
                    raise
        return await self.get(bookie_id)

    async def mark_visited(self, bookie_id: str, *, number: int | None = None) -> bool:
        """Record that the bookie's ledgers have been checked: every entry missing on it was never there, or has been copied back. Returns
        False if this was recorded before, or if the incarnation is another one by now.

        Args:
            number: of the incarnation that was checked; None for the present one.

        Raises:
            BadVersion: the disks are being replaced again.
        """
        found = await self._find(bookie_id)
        if found is None or found[0].visited or number not in (None, found[0].number):
            return False
        await self._tree.set(self._path(bookie_id), encode_incarnation(replace(found[0], visited=True)), found[1].version)
        return True

    async def _find(self, bookie_id: str) -> tuple[Incarnation, Stat] | None:
        path = self._path(bookie_id)
        try:
            data, stat = await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return None
        return decode_incarnation(data, stat.mtime_ms), stat

    def _path(self, bookie_id: str) -> str:
        return incarnation_path(self._root, check_bookie_id(bookie_id))
