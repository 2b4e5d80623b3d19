"""What the commands on snapshots share: asking for one, reading one back, and how one is printed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from triplicate.errors import NoSuchLedger, SnapshotDamaged, TriplicateError
from triplicate.log import LogSnapshots, Snapshot


async def request_snapshot(door: LogSnapshots, position: int, timeout_s: float) -> Snapshot | None:
    """Ask for a snapshot at an offset or beyond, and wait until it is listed; None when that takes too long."""
    watch = door.watch()
    try:
        listed = await door.want(position)
        async with asyncio.timeout(timeout_s):
            while not listed.good or listed.good[-1].position < position:
                await watch.changed()
                listed = await door.read()
            return listed.good[-1]
    except TimeoutError:
        return None
    finally:
        watch.close()


async def verdict(door: LogSnapshots, snapshot: Snapshot) -> str:
    """``verified``, or why a snapshot cannot be loaded. Nothing is marked: the nodes do that when they meet it."""
    if not snapshot.is_good:
        return f"{snapshot.state.value}: {snapshot.reason}"
    try:
        await door.verify(snapshot)
    except (SnapshotDamaged, NoSuchLedger) as error:
        return f"damaged: {error}"
    except TriplicateError as error:
        return f"unknown: {type(error).__name__}: {error}"
    return "verified"


def snapshot_facts(snapshot: Snapshot) -> dict[str, object]:
    """One snapshot as JSON."""
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
    """A wall time for people, UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
