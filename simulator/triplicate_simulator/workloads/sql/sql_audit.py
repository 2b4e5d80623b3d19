"""Checks at the end of the database workload: the listed snapshots, and the nodes' reports about their copies during the run."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from triplicate.client import Client
from triplicate.errors import NoSuchLedger, SnapshotDamaged
from triplicate.log import LogClientSettings, Logs, truncation_offset
from triplicate.sim.recorder import Fact
from triplicate_simulator.workloads.sql.sql_load import FURTHER_APPEND, FURTHER_GROUP

COPY_ENDS = ("node.copy_failed", "node.copy_given_up", "node.copy_not_set_aside")
"""No disk fault strikes the folder of copies, so nothing excuses these facts."""
DAMAGE = ("SnapshotDamaged", "CorruptionError", "FormatError")
"""Errors of an attempt to make or load a snapshot that indicate wrong content."""
CALM_S = 5.0
RETRIES_MAX = 20
"""More retries of one kind on one node, later than `CALM_S` after the last fault, count as endless."""


def find_unsound_copies(facts: Iterable[Fact], faults_over_s: float, lost: Collection[str]) -> list[str]:
    """Reports of nodes about their copies and snapshots that no fault of a run explains.

    Args:
        quiet_s: time at which faults were over.
        lost: ids of snapshots whose ledgers were deleted without the nodes' knowledge.
    """
    found: list[str] = []
    retries: dict[tuple[str, str, str], int] = {}
    for fact in facts:
        said = dict(fact.facts)
        if fact.kind in COPY_ENDS:
            found.append(f"copy: {fact}")
        elif fact.kind == "replica.snapshot_damaged" and said.get("snapshot") not in lost:
            found.append(f"snapshot: {fact}")
        elif fact.kind in ("replica.snapshot_failed", "replica.snapshot_not_loaded"):
            if str(said.get("error")).startswith(DAMAGE):
                found.append(f"snapshot: {fact}")
        elif fact.kind in ("replica.retry", "node.retry") and fact.time_s > faults_over_s + CALM_S:
            place = fact.node, str(said.get("log", said.get("database"))), str(said.get("during"))
            retries[place] = retries.get(place, 0) + 1
    found += [
        f"copy: {node} tries to {during} for {about} again and again: {count} times after faults were over"
        for (node, about, during), count in retries.items()
        if count > RETRIES_MAX
    ]
    return found


def count_window_faults(facts: Iterable[Fact]) -> int:
    """Faults that struck a leader while a group of its statements was at the log and a further one was there or about to be."""
    return sum(fact.kind.startswith("fault.") and dict(fact.facts).get("point") in (FURTHER_GROUP, FURTHER_APPEND) for fact in facts)


async def find_unsound_snapshots(client: Client, settings: LogClientSettings, lost: Collection[str]) -> list[str]:
    """Faults of the listed snapshots of all logs: each must be readable and match its digest, and the log must go back far enough.

    Args:
        lost: ids of snapshots whose ledgers were deleted without the nodes' knowledge.
    """
    logs = Logs(client, settings)
    found: list[str] = []
    for name in await logs.names():
        door = logs.snapshots(name)
        listed = await door.read(fresh=True)
        end = await logs.end_offset(name)
        for snapshot in listed.snapshots:
            what = f"snapshot: {snapshot.snapshot_id} of {name} at {snapshot.position}, made by {snapshot.node},"
            if not snapshot.position <= end:
                found.append(f"{what} stands beyond the log's end at {end}")
            if snapshot.snapshot_id in lost:
                continue
            if not snapshot.is_good:
                found.append(f"{what} is marked as damaged, which nothing did: {snapshot.reason}")
            try:
                await door.verify(snapshot)
            except (SnapshotDamaged, NoSuchLedger) as error:
                found.append(f"{what} cannot be loaded: {error}")
        first = (await logs.head(name)).first_offset
        if first > (truncation_offset(listed) or 0) and not any(snapshot.snapshot_id in lost for snapshot in listed.snapshots):
            found.append(f"snapshot: {name} begins at {first}, beyond the older of its last two good snapshots")
    return found
