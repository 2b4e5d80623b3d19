"""While an operator has frozen ensembles, writers and recoveries keep the bookies that they have."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import LedgerWriter
from triplicate.errors import NotEnoughBookies
from triplicate.wire import AddRequest, Status

PATIENT = replace(QUICK, add_timeout_s=30.0, read_timeout_s=30.0)
"""A bookie that is only slow does not fail."""


async def freeze(cluster: FakeCluster) -> None:
    await cluster.metadata.ensemble_freezes.begin("a switch is replaced", "me@here", 3600)


def members(writer: LedgerWriter) -> tuple[str, ...]:
    return writer.metadata.last_segment.ensemble


def test_a_bookie_is_replaced_only_after_the_freeze() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(PATIENT) as client:
            writer = await client.create()
            await writer.append(b"0")
            before, dead = members(writer), members(writer)[1]
            await freeze(cluster)
            await cluster[dead].stop()
            assert [await writer.append(b"x") for _ in range(5)] == [1, 2, 3, 4, 5]
            await eventually(lambda: writer.missing_bookies == (dead,))
            assert (writer.ensemble_changes, members(writer)) == (0, before)
            assert await cluster.metadata.ensemble_freezes.end()
            # A bookie that comes is noticed at once, and so is the end of the freeze.
            await cluster.add("e")
            await eventually(lambda: writer.ensemble_changes == 1)
            assert dead not in members(writer)
            assert await writer.append(b"y") == 6

    run(main())


def test_a_frozen_writer_resumes_a_bookie_that_is_back() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(PATIENT) as client:
            writer = await client.create()
            await freeze(cluster)
            slow = members(writer)[1]
            cluster[slow].when(AddRequest, Status.IO_ERROR)
            await writer.append(b"0")
            await eventually(lambda: bool(cluster.told("client.bookie_failed")))
            cluster[slow].obey()
            # The writer may have tried it once more while it still refused, and then leaves it alone for a moment.
            last = 0
            while slow not in cluster.holders(writer.ledger_id, last):
                last = await writer.append(b"x")
                await asyncio.sleep(0.02)
            assert cluster.told("client.bookie_back")
            assert writer.ensemble_changes == 0

    run(main())


def test_a_frozen_writer_without_an_ack_quorum_fails_with_the_freeze() -> None:
    async def main() -> None:
        async with fake_cluster("abcde") as cluster, cluster.client() as client:
            writer = await client.create()
            await freeze(cluster)
            for name in members(writer)[:2]:
                await cluster[name].stop()
            with pytest.raises(NotEnoughBookies, match=r"changes of ensembles are frozen until .* by me@here: a switch is replaced"):
                await writer.append(b"0")
            assert len((await cluster.metadata_of(writer.ledger_id)).segments) == 1

    run(main())


def test_a_frozen_recovery_goes_on_with_the_bookies_there_are() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(PATIENT) as client, cluster.client(PATIENT) as other:
            writer = await client.create()
            await writer.append_many([b"x"] * 3)
            before = members(writer)
            await freeze(cluster)
            cluster[before[2]].when(AddRequest, Status.IO_ERROR)
            reader = await other.recover(writer.ledger_id)
            assert reader.last_add_confirmed == 2
            assert [segment.ensemble for segment in (await cluster.metadata_of(writer.ledger_id)).segments] == [before]

    run(main())


def test_new_ledgers_are_created_while_ensembles_are_frozen() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(PATIENT) as client:
            await freeze(cluster)
            writer = await client.create()
            assert await writer.append(b"0") == 0

    run(main())
