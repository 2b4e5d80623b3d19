"""The under-replication tree of Apache's auditor and replication worker: we read it, and write the same bytes.

``python -m tests.interop.capture_repair`` rewrites ``captured/repair-*.json``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree, PeriodicCheck
from triplicate.metadata.core.repair_formats import (
    check_repair_layout,
    decode_check_time,
    decode_lock,
    decode_mark,
    decode_vote,
    encode_check_time,
    encode_lock,
    encode_mark,
    encode_repair_layout,
    encode_vote,
)
from triplicate.runtime import real_host

BASE = "/ledgers/underreplication"


@dataclass(frozen=True)
class Captured:
    ledger_id: int
    missing: str
    auditor: str
    nodes: dict[str, bytes]
    ephemerals: list[str]

    @property
    def mark_path(self) -> str:
        (path,) = (path for path in self.nodes if path.startswith("/ledgers/") and "urL" in path)
        return path


@pytest.fixture(params=["4.18.0", "4.14.7"])
def captured(request: pytest.FixtureRequest) -> Captured:
    path = Path(__file__).with_name("captured") / f"repair-{request.param}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["provenance"]["autorecovery"] == f"Apache BookKeeper {request.param}"
    nodes = content["nodes"]
    return Captured(
        content["ledger_id"],
        content["missing"],
        content["auditor"],
        {path: bytes.fromhex(node["data"]) for path, node in nodes.items()},
        [path for path, node in nodes.items() if node["ephemeral"]],
    )


def test_every_format_gives_the_same_bytes_again(captured: Captured) -> None:
    nodes = captured.nodes
    check_repair_layout(nodes["/LAYOUT"])
    assert encode_repair_layout() == nodes["/LAYOUT"]
    missing, ctime_ms = decode_mark(nodes[captured.mark_path])
    assert missing == (captured.missing,)
    assert ctime_ms is not None
    assert encode_mark(missing, ctime_ms) == nodes[captured.mark_path]
    (lock,) = (data for path, data in nodes.items() if path.startswith("/locks/"))
    assert encode_lock(decode_lock(lock)) == lock
    (vote,) = (data for path, data in nodes.items() if path.startswith("/auditorelection/V_"))
    assert decode_vote(vote) == captured.auditor
    assert encode_vote(captured.auditor) == vote == nodes["/auditorelection"]
    for check in PeriodicCheck:
        time_ms = decode_check_time(nodes[f"/{check.value}"])
        assert time_ms is not None
        assert encode_check_time(time_ms) == nodes[f"/{check.value}"]


@asynccontextmanager
async def member(store: MemoryStore) -> AsyncIterator[ClusterMetadata]:
    tree = MemoryTree(store)
    yield await ClusterMetadata.open(tree, real_host("golden", seed=1), create=True)
    await tree.close()


def test_apaches_tree_is_understood(captured: Captured) -> None:
    async def body() -> None:
        store = MemoryStore(real_host("golden").clock)
        async with member(store) as apache, member(store) as ours:
            for path, data in captured.nodes.items():
                await apache.tree.create(f"{BASE}{path}", data, ephemeral=path in captured.ephemerals, parents=True)
            marks = ours.under_replication
            (mark,) = [mark async for mark in marks.marks()]
            assert (mark.ledger_id, mark.missing, mark.version) == (captured.ledger_id, (captured.missing,), 0)
            assert await marks.lock_any("us") is None
            assert await marks.worker_of(mark.ledger_id) == "localhost"
            assert await ours.auditor.current() == captured.auditor
            assert await marks.lost_bookie_recovery_delay_s() == 0
            for check in PeriodicCheck:
                assert (await marks.check_time_ms(check) or 0) > 1_700_000_000_000
            await apache.aclose()
            assert await ours.auditor.current() is None
            lock = await marks.lock_any("us")
            assert lock is not None
            assert await marks.complete(lock)
            assert await ours.tree.exists(f"{BASE}/ledgers/0000") is None

    asyncio.run(body())


def test_our_tree_is_apaches(captured: Captured) -> None:
    """The same steps in our code leave the same nodes, except for times and the machine's name."""

    async def body() -> None:
        async with member(MemoryStore(real_host("golden").clock)) as ours:
            marks = ours.under_replication
            await ours.auditor.elected(captured.auditor)
            await marks.initialise_lost_bookie_recovery_delay_s(0)
            for check in PeriodicCheck:
                time_ms = decode_check_time(captured.nodes[f"/{check.value}"])
                assert time_ms is not None
                await marks.set_check_time_ms(check, time_ms)
            await marks.mark(captured.ledger_id, [captured.missing])
            assert await marks.lock_any("localhost") is not None
            written = {path: await node(ours, f"{BASE}{path}") for path in captured.nodes}
            assert {path for path, (_, ephemeral) in written.items() if ephemeral} == set(captured.ephemerals)
            mark = await marks.get(captured.ledger_id)
            assert mark is not None
            expected = {**captured.nodes, captured.mark_path: encode_mark((captured.missing,), mark.ctime_ms)}
            assert {path: data for path, (data, _) in written.items()} == expected
            (names, _) = await ours.tree.children(BASE)
            assert sorted(names) == sorted({path.split("/")[1] for path in captured.nodes if path})

    asyncio.run(body())


async def node(cluster: ClusterMetadata, path: str) -> tuple[bytes, bool]:
    data, stat = await cluster.tree.get(path)
    return data, stat.ephemeral_owner != 0
