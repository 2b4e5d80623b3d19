"""Which ledgers belong to a living writer of a log."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.client.cluster import fake_cluster, run
from triplicate.log import Logs, has_living_writer


def test_a_ledger_of_the_present_epoch_has_a_living_writer_until_its_session_ends() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            logs = Logs(client)
            await logs.create("l")
            writer = await logs.writer("l", owner="w")
            await writer.append(b"x")
            first = await client.metadata_of((await logs.segments("l"))[-1].ledger_id)
            assert await has_living_writer(logs, first)
            second_writer = await logs.writer("l", owner="v")
            second = await client.metadata_of((await logs.segments("l"))[-1].ledger_id)
            assert await has_living_writer(logs, second)
            assert not await has_living_writer(logs, first), "its writer was replaced"
            await second_writer.close()
            assert not await has_living_writer(logs, second), "its writer is gone"

    run(main())


def test_a_ledger_that_belongs_to_no_log_has_no_known_writer() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            logs = Logs(client)
            writer = await client.create()
            metadata = await client.metadata_of(writer.ledger_id)
            for custom in ({}, {"log": b"absent", "epoch": b"1"}, {"log": b"\xff"}, {"log": b"a/b//"}, {"log": b""}):
                assert not await has_living_writer(logs, replace(metadata, custom=custom))
            writer.abandon()

    run(main())
