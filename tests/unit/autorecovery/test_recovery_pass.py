"""Passes of auto-recovery by hand, over controlled and over real bookies."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from tests.unit.autorecovery.recovery_rig import PROMPT, absent_copies, is_marked, lose, write_ledger
from tests.unit.client.cluster import fake_cluster, run
from tests.unit.client.real_cluster import real_cluster
from triplicate.autorecovery import PassProgress, RepairOutcome, recover_bookies
from triplicate.errors import ArgumentError
from triplicate.ledger import DigestType, LedgerState, write_set
from triplicate.log import Logs, has_living_writer
from triplicate.metadata import bookie_service


def test_every_ledger_of_a_lost_bookie_gets_its_copies() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            shapes = [(3, 3, 2), (4, 2, 2), (3, 2, 2), (2, 2, 1)]
            ledger_ids = [await write_ledger(client, 20 + number, sizes=shapes[number % 4]) for number in range(12)]
            left = [await write_ledger(client, 5, close=False) for _ in range(2)]
            for ledger_id in [*ledger_ids, *left]:
                await asyncio.sleep(0)
                metadata = await cluster.metadata_of(ledger_id)
                await cluster.settled(ledger_id, metadata.last_entry_id if metadata.is_closed else 4, metadata.write_quorum)
            await cluster.add("e")
            await lose(cluster, "b")
            progress = PassProgress()
            report = await recover_bookies(client, settings=PROMPT, progress=progress)
            assert report.lost == ("b",)
            assert report.unrepaired == ()
            assert progress.ledgers_done == progress.ledgers_total == len(report.repairs) == len(report.needs)
            assert progress.bytes_copied == sum(repair.size_bytes for repair in report.repairs) > 0
            for ledger_id in [*ledger_ids, *left]:
                metadata = await cluster.metadata_of(ledger_id)
                assert not [segment for segment in metadata.segments if "b" in segment.ensemble]
                assert absent_copies(cluster, ledger_id, metadata) == []
                assert not await is_marked(cluster, ledger_id)
            again = await recover_bookies(client, settings=PROMPT)
            assert (again.lost, again.needs, again.repairs) == ((), (), ())

    run(main())


def test_a_dry_run_changes_nothing() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 10)
            before = await cluster.metadata.ledgers.get(ledger_id)
            await lose(cluster, "b")
            report = await recover_bookies(client, settings=PROMPT, dry_run=True)
            (need,) = report.needs
            assert (need.ledger_id, need.missing, need.fragments, need.entries) == (ledger_id, ("b",), 1, 10)
            assert need.size_bytes == before.value.length
            assert report.repairs == ()
            assert await cluster.metadata.ledgers.get(ledger_id) == before
            assert not await is_marked(cluster, ledger_id)

    run(main())


def test_named_bookies_are_checked() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            await write_ledger(client, 3)
            with pytest.raises(ArgumentError, match="a is registered and writable"):
                await recover_bookies(client, ["a"])
            with pytest.raises(ArgumentError, match="nobody has no cookie, and no ledger names it"):
                await recover_bookies(client, ["nobody"])
            for name in "abcd":
                await cluster.metadata.bookies.unregister(name)
            with pytest.raises(ArgumentError, match="no bookie is registered"):
                await recover_bookies(client)

    run(main())


def test_a_named_bookie_that_is_read_only_is_emptied() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 12, sizes=(3, 1, 1))
            await cluster.add("d")
            await cluster.metadata.bookies.set_readonly("b", bookie_service("127.0.0.1", cluster.ports["b"]), True)
            assert (await recover_bookies(client, settings=PROMPT, dry_run=True)).needs == ()
            report = await recover_bookies(client, ["b"], settings=PROMPT)
            assert report.unrepaired == ()
            metadata = await cluster.metadata_of(ledger_id)
            assert "b" not in metadata.last_segment.ensemble
            assert absent_copies(cluster, ledger_id, metadata) == []

    run(main())


def test_what_cannot_be_repaired_is_reported_and_stays_marked() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            lost_entry, whole = await write_ledger(client, 10), await write_ledger(client, 10)
            for ledger_id in (lost_entry, whole):
                await cluster.settled(ledger_id, 9)
            await cluster.add("d")
            await lose(cluster, "b")
            for name in "ac":
                del cluster[name].ledgers[lost_entry].entries[4]
            report = await recover_bookies(client, settings=PROMPT)
            (failed,) = report.unrepaired
            assert (failed.ledger_id, failed.outcome) == (lost_entry, RepairOutcome.FAILED)
            assert "entry 4" in failed.reason
            assert await is_marked(cluster, lost_entry)
            assert not await is_marked(cluster, whole)

    run(main())


def test_a_ledger_whose_writer_is_at_work_is_left_to_it() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create(password=b"secret")
            await writer.append(b"before")
            await lose(cluster, "b")
            recovering = asyncio.ensure_future(recover_bookies(client, settings=PROMPT))
            while not recovering.done():
                await writer.append(b"meanwhile")
                await asyncio.sleep(0.02)
            (left,) = (await recovering).unrepaired
            assert left.outcome is RepairOutcome.HAS_WRITER
            assert (await cluster.metadata_of(writer.ledger_id)).state is LedgerState.OPEN
            await writer.append(b"after")
            writer.abandon()

    run(main())


def test_real_bookies_list_every_copy_after_a_pass() -> None:
    async def main() -> None:
        async with real_cluster("abcd") as cluster, cluster.client() as client:
            digests = list(DigestType)
            ledger_ids = [await write_ledger(client, 150, sizes=(3, 2, 2), digest_type=digests[number % 4]) for number in range(8)]
            deferred = await client.create(password=b"secret", deferred_sync=True)
            for number in range(10):
                await deferred.append(b"deferred %d" % number)
            await deferred.force()
            await deferred.close()
            ledger_ids += [deferred.ledger_id, await write_ledger(client, 40, close=False)]
            await cluster.bookies["b"].stop()
            report = await recover_bookies(client, settings=PROMPT)
            assert report.lost == ("b",)
            assert report.unrepaired == ()
            async with client.bookie_copies() as copies:
                for ledger_id in ledger_ids:
                    metadata = await client.metadata_of(ledger_id)
                    assert not [segment for segment in metadata.segments if "b" in segment.ensemble]
                    listed = {name: await copies.listed(ledger_id, name) for name in "acd"}
                    for entry_id in range(metadata.last_entry_id + 1):
                        ensemble = metadata.ensemble_of(entry_id)
                        for position in write_set(entry_id, metadata.ensemble_size, metadata.write_quorum):
                            assert entry_id in listed[ensemble[position]]
                    async with await client.open(ledger_id, password=b"secret") as reader:
                        assert len(await reader.read(0, reader.last_add_confirmed)) == reader.last_add_confirmed + 1

    run(main())


def test_an_idle_writer_of_a_log_is_not_fenced_while_its_session_lives() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            logs = Logs(client)
            await logs.create("l")
            writer = await logs.writer("l", owner="w")
            await writer.append(b"before")
            await lose(cluster, "b")
            quick = replace(PROMPT, open_ledger_grace_s=0.05)
            report = await recover_bookies(client, settings=quick, has_living_writer=partial(has_living_writer, logs))
            assert {repair.outcome for repair in report.unrepaired} == {RepairOutcome.HAS_WRITER}
            segment = (await logs.segments("l"))[-1].ledger_id
            assert (await cluster.metadata_of(segment)).state is LedgerState.OPEN
            await writer.append(b"after")
            await cluster.add("d")
            await writer.abandon()

    run(main())
