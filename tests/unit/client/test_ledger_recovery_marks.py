"""A recovery ends when an ack quorum has its copies. Where another bookie lacks one, the ledger is marked as under-replicated."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import Client, ledger_recovery
from triplicate.errors import ConnectionLost
from triplicate.metadata import UnderreplicationManager
from triplicate.wire import AddRequest, Request


def holds_copies(request: Request) -> str | None:
    """The rule of a bookie that stores the copies of no recovery in time."""
    return "hold" if isinstance(request, AddRequest) and request.recovery else None


async def left_open(cluster: FakeCluster, client: Client) -> int:
    """A ledger whose writer is gone, with entries that its recovery copies."""
    writer = await client.create()
    for number in range(3):
        await writer.append(b"%d" % number)
    await cluster.settled(writer.ledger_id, 2)
    writer.abandon()
    return writer.ledger_id


async def marked(cluster: FakeCluster, ledger_id: int) -> tuple[str, ...]:
    mark = await cluster.metadata.under_replication.get(ledger_id)
    return () if mark is None else mark.missing


def test_a_bookie_that_lacks_a_copy_is_marked() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await left_open(cluster, client)
            cluster["b"].rules.append(holds_copies)
            async with await client.recover(ledger_id) as reader:
                assert reader.last_add_confirmed == 2
            assert await marked(cluster, ledger_id) == ("b",)

    run(main())


def test_a_bookie_that_is_gone_is_marked() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await left_open(cluster, client)
            await cluster["b"].stop()
            async with await client.recover(ledger_id):
                pass
            assert await marked(cluster, ledger_id) == ("b",)

    run(main())


def test_a_recovery_waits_a_moment_for_the_last_copy_and_marks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_recovery, "COPIES_WAIT_S", 60.0)

    async def main() -> None:
        patient = replace(QUICK, add_timeout_s=30.0, read_timeout_s=30.0)
        async with fake_cluster("abc") as cluster, cluster.client(patient) as client:
            ledger_id = await left_open(cluster, client)
            cluster["b"].rules.append(holds_copies)
            recovering = asyncio.ensure_future(client.recover(ledger_id))

            async def is_closed() -> bool:
                return (await cluster.metadata_of(ledger_id)).is_closed

            while not await is_closed():
                await asyncio.sleep(0.005)
            await eventually(lambda: bool(cluster["b"].held))
            assert not recovering.done()
            cluster["b"].obey()
            await (await recovering).aclose()
            assert await marked(cluster, ledger_id) == ()

    run(main())


def test_nothing_is_marked_on_request_or_without_copies() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await left_open(cluster, client)
            empty = await client.create()
            empty.abandon()
            cluster["b"].rules.append(holds_copies)
            await (await client.recover(ledger_id, mark=False)).aclose()
            await (await client.recover(empty.ledger_id)).aclose()
            assert await marked(cluster, ledger_id) == await marked(cluster, empty.ledger_id) == ()

    run(main())


def test_a_mark_that_fails_does_not_fail_the_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    async def mark(marks: UnderreplicationManager, ledger_id: int, missing: object) -> None:
        raise ConnectionLost("away")

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await left_open(cluster, client)
            cluster["b"].rules.append(holds_copies)
            monkeypatch.setattr(UnderreplicationManager, "mark", mark)
            async with await client.recover(ledger_id) as reader:
                assert reader.last_add_confirmed == 2
            assert cluster.told("client.ledger_not_marked") == [{"ledger": ledger_id, "missing": "b", "error": "away"}]

    run(main())
