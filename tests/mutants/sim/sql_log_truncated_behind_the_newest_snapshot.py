"""The log is truncated behind the newest snapshot, so no copy can be built from the older one if that snapshot is lost."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("copies_are_equal",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import SnapshotList
    from triplicate.replica import snapshot_keeper
    from triplicate_simulator.workloads.sql import sql_audit

    def newest(listed: SnapshotList) -> int | None:
        return listed.good[-1].position if listed.good else None

    patch(snapshot_keeper, "truncation_offset", newest)
    # The audit holds the log against the rule itself. Here it is to be seen that the rule is there for something.
    patch(sql_audit, "truncation_offset", newest)
