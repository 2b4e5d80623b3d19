"""Copies of entries that are known to be damaged: which bookie has them, and which entries they are.

BookKeeper's mark of an under-replicated ledger names bookies only, and a bookie lists the entries of damaged copies as it lists others.
So a program that finds damage records the entries beside the mark. A replication worker replaces exactly these copies and deletes the
record at the version that it read. The record outlasts the mark if a worker of BookKeeper deletes that without a repair.

The node is ``/triplicate/<INSTANCEID>/damaged/<ledger id>``: JSON with ``v`` (1) and ``copies``, which has a list of ``[first, last]``
for each bookie.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from triplicate.errors import BadVersion, FormatError, MetadataError, NodeExists, NoNode
from triplicate.metadata.core.bookie_ids import check_bookie_id
from triplicate.metadata.core.own_paths import damaged_copies_path, damaged_ledger_path
from triplicate.metadata.core.tree import Stat, Tree
from triplicate.metadata.retries import retried
from triplicate.runtime import Host

FORMAT = 1
RANGES_MAX = 500
"""Ranges of one bookie in a record. With more, neighbouring ranges are joined, and intact copies between them are replaced as well."""
RACES_MAX = 100


@dataclass(frozen=True, slots=True)
class DamagedCopies:
    """The damaged copies of one ledger.

    Args:
        copies: by bookie, the entries as ranges, ascending.
        version: of the record.
    """

    ledger_id: int
    copies: Mapping[str, tuple[range, ...]]
    version: int


def encode_damaged(copies: Mapping[str, Iterable[range]]) -> bytes:
    """The node's bytes."""
    listed = {bookie_id: [[run.start, run.stop - 1] for run in runs] for bookie_id, runs in copies.items()}
    return json.dumps({"copies": listed, "v": FORMAT}, sort_keys=True, separators=(",", ":")).encode()


def decode_damaged(ledger_id: int, data: bytes) -> dict[str, tuple[range, ...]]:
    """Raises FormatError: the data is not such a record, or was written by a newer release."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise FormatError(f"damaged copies of ledger {ledger_id}: format {fields['v']}, this release knows {FORMAT}: use a newer one")
        return {bookie_id: tuple(range(int(first), int(last) + 1) for first, last in runs) for bookie_id, runs in fields["copies"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"damaged copies of ledger {ledger_id} cannot be understood: {error!r}") from error


def joined_ranges(runs: Iterable[range], most: int = RANGES_MAX) -> tuple[range, ...]:
    """The entries of all runs as ranges that do not touch, ascending. Beyond `most` ranges the nearest ones are joined."""
    found: list[range] = []
    for run in sorted(runs, key=lambda run: (run.start, run.stop)):
        if found and run.start <= found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, run.stop))
        elif run:
            found.append(run)
    if len(found) > most:
        gaps = sorted((after.start - before.stop, after.start) for before, after in pairwise(found))
        kept = {start for _, start in gaps[len(found) - most :]}
        narrow, found = found, []
        for run in narrow:
            if found and run.start not in kept:
                found[-1] = range(found[-1].start, run.stop)
            else:
                found.append(run)
    return tuple(found)


class DamagedCopiesRecords:
    """The records of one cluster.

    Args:
        root: Triplicate's root of the cluster.
    """

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        self._tree = tree
        self._host = host
        self._root = root

    async def report(self, ledger_id: int, bookie_id: str, runs: Iterable[range]) -> bool:
        """Add entries of a bookie to the record of a ledger; False if all of them are recorded.

        Raises:
            FormatError: the existing record cannot be decoded. ConnectionLost, MetadataError: the call can be repeated.
        """
        path, added = damaged_ledger_path(self._root, ledger_id), tuple(runs)
        check_bookie_id(bookie_id)
        for _ in range(RACES_MAX):
            found = await self._find(ledger_id)
            copies = {} if found is None else dict(found[0])
            before = copies.get(bookie_id, ())
            copies[bookie_id] = joined_ranges((*before, *added))
            if copies[bookie_id] == before:
                return False
            data = encode_damaged(copies)
            try:
                if found is None:
                    await self._tree.create(path, data, parents=True)
                else:
                    await self._tree.set(path, data, found[1].version)
            except (NodeExists, NoNode, BadVersion):
                continue  # Another process has changed the record, or deleted it, meanwhile.
            return True
        raise MetadataError(f"{path}: others changed it {RACES_MAX} times while damage was being recorded")

    async def get(self, ledger_id: int) -> DamagedCopies | None:
        """The record of a ledger, or None. Raises FormatError."""
        found = await self._find(ledger_id)
        return None if found is None else DamagedCopies(ledger_id, found[0], found[1].version)

    async def delete(self, record: DamagedCopies) -> bool:
        """Delete a record unless it was changed since it was read; returns whether it is gone."""
        path = damaged_ledger_path(self._root, record.ledger_id)
        try:
            await retried(self._host, lambda: self._tree.delete(path, record.version))
        except NoNode:
            return True
        except BadVersion:
            return False
        return True

    async def ledger_ids(self) -> list[int]:
        """The ledgers with a record, ascending."""
        try:
            names, _ = await retried(self._host, lambda: self._tree.children(damaged_copies_path(self._root)))
        except NoNode:
            return []
        return sorted(int(name) for name in names if name.isdecimal())

    async def _find(self, ledger_id: int) -> tuple[dict[str, tuple[range, ...]], Stat] | None:
        path = damaged_ledger_path(self._root, ledger_id)
        try:
            data, stat = await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return None
        return decode_damaged(ledger_id, data), stat
