"""A defect in the first load of a snapshot fails the copy, which is reopened after a moment."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("copies",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import Snapshot
    from triplicate.replica import SnapshotKeeper

    usual = SnapshotKeeper._load
    met: set[str] = set()

    async def defective(self: SnapshotKeeper, snapshot: Snapshot) -> None:
        key = f"{self._node_id} {snapshot.snapshot_id}"
        if key not in met:
            met.add(key)
            raise KeyError(snapshot.snapshot_id)
        await usual(self, snapshot)

    patch(SnapshotKeeper, "_load", defective)
