"""Functions shared by the commands on snapshots: request one, verify one, and format one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from triplicate.errors import NoSuchLedger, SnapshotDamaged, TriplicateError
from triplicate.log import LogSnapshots, Snapshot


async def request_snapshot(snapshots: LogSnapshots, position: int, timeout_s: float) -> Snapshot | None:
    """Request a snapshot at an offset or beyond, and wait until it is listed; None after the timeout."""
    watch = snapshots.watch()
    try:
        listed = await snapshots.want(position)
        async with asyncio.timeout(timeout_s):
            while not listed.good or listed.good[-1].position < position:
                await watch.changed()
                listed = await snapshots.read()
            return listed.good[-1]
    except TimeoutError:
        return None
    finally:
        watch.close()


async def verdict(snapshots: LogSnapshots, snapshot: Snapshot) -> str:
    """``verified``, or the reason why a snapshot cannot be loaded. The snapshot is not marked: nodes do that when they load it."""
    if not snapshot.is_good:
        return f"{snapshot.state.value}: {snapshot.reason}"
    try:
        await snapshots.verify(snapshot)
    except (SnapshotDamaged, NoSuchLedger) as error:
        return f"damaged: {error}"
    except TriplicateError as error:
        return f"unknown: {type(error).__name__}: {error}"
    return "verified"


def snapshot_facts(snapshot: Snapshot) -> dict[str, object]:
    """The facts of one snapshot for JSON."""
    return {
        "snapshot": snapshot.snapshot_id,
        "ledger": snapshot.ledger_id,
        "position": snapshot.position,
        "epoch": snapshot.epoch,
        "time_ms": snapshot.time_ms,
        "bytes": snapshot.size_bytes,
        "stored": snapshot.stored_bytes,
        "chunks": snapshot.chunks,
        "digest": snapshot.digest,
        "node": snapshot.node,
        "state": snapshot.state.value,
        "reason": snapshot.reason,
    }


def time_text(time_ms: int) -> str:
    """Format a wall time in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
