"""Logs with long heads, the reads of their nodes, and lost changes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tests.unit.log.fake import Stage
from triplicate.errors import ConnectionLost
from triplicate.log import Logs, LogSettings
from triplicate.log.core import head_changes
from triplicate.log.core.head import LogSegment, SegmentState
from triplicate.log.store.head_store import HeadDecision, StoredHead
from triplicate.metadata import InjectedFault, Stat

ROLLING = LogSettings(roll_size_bytes=1024, compression="none")


def lose_connection(stage: Stage, *, applied: bool, times: int, only: Callable[[str, str], bool]) -> list[str]:
    """Let the next `times` operations that `only` picks lose their connection; returns their paths, as they are lost."""
    lost: list[str] = []

    def fault(session: int, operation: str, path: str) -> InjectedFault | None:
        if len(lost) < times and only(operation, path):
            lost.append(path)
            error = ConnectionLost(f"{path}: the connection was lost")
            return InjectedFault(raise_after=error) if applied else InjectedFault(raise_before=error)
        return None

    stage.store.fault = fault
    return lost


async def held_at(tree: Any, operation: str, call: Callable[[], Coroutine[Any, Any, Any]], *, ending: str = "/owner") -> asyncio.Task[Any]:
    """Start a call, and hold it where an operation of its has made a node, by default an owner's, as if the answer were on its way."""
    right, reached = getattr(tree, operation), asyncio.Event()

    async def held(first: Any, *others: Any, **options: Any) -> Any:
        result = await right(first, *others, **options)
        path = first if isinstance(first, str) else first[0].path
        if path.endswith(ending):
            setattr(tree, operation, right)
            reached.set()
            await asyncio.get_running_loop().create_future()
        return result

    setattr(tree, operation, held)
    task = asyncio.get_running_loop().create_task(call())
    await reached.wait()
    return task


def changes_of_head(operation: str, path: str) -> bool:
    """Whether an operation changes the head of log "l"."""
    return operation == "multi" and path == "/triplicate/test/logs/l"


def operations_on_owner(operation: str, path: str) -> bool:
    """Whether an operation is on the node of the owner of log "l"."""
    return path == "/triplicate/test/logs/l/owner"


@dataclass
class PastReads:
    """Reads of one node that see an earlier state of it."""

    old: int = 0
    """How many of the next reads see it."""


def read_the_past(logs: Logs, path: str) -> PastReads:
    """Let a client's reads of a node see, on demand, the state of its latest other read: data and version."""
    tree: Any = logs.client.metadata.tree
    get, past = tree.get, PastReads()
    last: list[tuple[bytes, Stat]] = []

    async def lagging(wanted: str) -> tuple[bytes, Stat]:
        if wanted == path and past.old:
            past.old -= 1
            return last[-1]
        found: tuple[bytes, Stat] = await get(wanted)
        if wanted == path:
            last.append(found)
        return found

    tree.get = lagging
    return past


def count_reads(logs: Logs) -> list[str]:
    """Paths of the nodes that a client reads from now on."""
    tree: Any = logs.client.metadata.tree
    get, paths = tree.get, list[str]()

    async def counted(path: str) -> tuple[bytes, Stat]:
        paths.append(path)
        found: tuple[bytes, Stat] = await get(path)
        return found

    tree.get = counted
    return paths


async def lengthen(logs: Logs, count: int) -> None:
    """List `count` segments whose ledgers do not exist, as a log of that age would."""
    checks = logs.store._ledger_checks
    logs.store._ledger_checks = lambda change, extra: []  # type: ignore[method-assign]
    for start in range(0, count, 500):

        async def decide(stored: StoredHead, start: int = start) -> HeadDecision:
            now_us = logs.client.host.clock.wall_us()
            ids = range(10_000_000 + start, 10_000_000 + min(count, start + 500))
            segments = [LogSegment(ledger_id, 0, 10, 1000, 5, now_us, now_us, SegmentState.CLOSED) for ledger_id in ids]
            return head_changes.publish(stored.head, segments, logs.store.token(), logs.store.limits), ()

        await logs.store.change("l", decide, log_id=(await logs.head("l")).log_id)
    logs.store._ledger_checks = checks  # type: ignore[method-assign]


async def fill(logs: Logs, count: int, settings: LogSettings = ROLLING) -> None:
    """Create log "l" with `count` records of about 1 kB, by default one per segment."""
    await logs.create("l", settings)
    async with await logs.writer("l", owner="w") as writer:
        for number in range(count):
            await writer.append_entry([b"%04d" % number + b"." * 1000])
