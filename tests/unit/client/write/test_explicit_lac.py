"""An idle writer sends its last-add-confirmed; a busy one need not, and one without the setting never does."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.ledger import EntryCodec
from triplicate.wire import Status, WriteLacRequest

TELLING = replace(QUICK, explicit_lac_interval_s=0.03)


def told(cluster: FakeCluster) -> dict[str, list[int]]:
    """The explicit last-add-confirmed values that each bookie received, in order."""
    return {
        name: [request.lac for request in bookie.seen if isinstance(request, WriteLacRequest)] for name, bookie in cluster.bookies.items()
    }


@pytest.mark.parametrize("wire", ["v2", "v3"])
def test_an_idle_writer_sends_its_last_confirmed_entry(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(TELLING, wire=wire)) as client, await client.create() as writer:
            for _ in range(5):
                await writer.append(b"x")
            await eventually(lambda: all(seen[-1:] == [4] for seen in told(cluster).values()))
            codec = EntryCodec(writer.ledger_id, writer.metadata.digest_type, b"")
            for name in "abc":
                record = cluster[name].ledgers[writer.ledger_id].explicit_lac
                assert record is not None
                assert codec.decode_lac(record) == 4
            before = told(cluster)
            await asyncio.sleep(0.1)
            assert told(cluster) == before, "once is enough"

    run(main())


def test_only_the_write_set_of_that_entry_is_sent_the_record() -> None:
    async def main() -> None:
        shape = {"ensemble_size": 5, "write_quorum": 2, "ack_quorum": 2}
        async with fake_cluster("abcde") as cluster, cluster.client(TELLING) as client, await client.create(**shape) as writer:  # type: ignore[arg-type]
            await writer.append_many([b"x"] * 4)
            ensemble = writer.metadata.last_segment.ensemble
            await eventually(lambda: all(told(cluster)[name][-1:] == [3] for name in ensemble[3:]))
            await asyncio.sleep(0.02)
            # On a slow machine the last entries are confirmed after a first record.
            for name, sent in told(cluster).items():
                assert all(name in (ensemble[entry_id], ensemble[(entry_id + 1) % 5]) for entry_id in sent)

    run(main())


def test_nothing_is_sent_while_adds_carry_it() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(TELLING) as client, await client.create() as writer:
            slow = 0
            for _ in range(20):
                began = asyncio.get_running_loop().time()
                await writer.append(b"x")
                await asyncio.sleep(0.01)
                slow += int((asyncio.get_running_loop().time() - began) // 0.03)
            carried = sum(map(len, told(cluster).values()))
            assert carried <= 6 + 3 * slow, "a busy writer has nothing to add, but for moments in which it was slow"

    run(main())


def test_a_record_that_too_few_bookies_stored_is_sent_again() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(TELLING) as client, await client.create() as writer:
            for name in "ab":
                cluster[name].when(WriteLacRequest, Status.READ_ONLY)
            await writer.append(b"x")
            await eventually(lambda: len(told(cluster)["a"]) >= 2)
            assert writer.failure is None, "best effort: no harm comes of it"
            for name in "ab":
                cluster[name].obey()
            await eventually(lambda: cluster["a"].ledgers[writer.ledger_id].explicit_lac is not None)

    run(main())


def test_a_writer_that_is_off_or_ended_sends_nothing() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as quiet, cluster.client(TELLING) as client:
            writer = await quiet.create()
            await writer.append(b"x")
            ended = await client.create()
            await ended.append(b"x")
            await ended.close()
            await asyncio.sleep(0.1)
            assert not any(told(cluster).values())

    run(main())


def test_a_forced_entry_of_a_ledger_with_deferred_sync_is_sent() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(TELLING) as client, await client.create(deferred_sync=True) as writer:
            await writer.append_many([b"x"] * 3)
            await asyncio.sleep(0.08)
            assert not any(told(cluster).values())
            assert await writer.force() == 2
            await eventually(lambda: all(seen == [2] for seen in told(cluster).values()))

    run(main())
