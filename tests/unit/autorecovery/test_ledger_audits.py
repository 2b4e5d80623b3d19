"""The audits of all ledgers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.autorecovery.recovery_rig import lose, write_ledger
from tests.unit.client.cluster import FakeCluster, fake_cluster, run
from triplicate.autorecovery import Audit, AuditorMetrics, CopyPace, LedgerAudits
from triplicate.client import Client
from triplicate.errors import ArgumentError
from triplicate.ledger import DigestType
from triplicate.wire import ListEntriesRequest, ReadRequest


def audits_of(client: Client, *, dry_run: bool = False, obeys_disable: bool = False) -> LedgerAudits:
    pace = CopyPace(client.host.clock, 0)
    return LedgerAudits(client, pace, AuditorMetrics(None), dry_run=dry_run, obeys_disable=obeys_disable)


async def marked(cluster: FakeCluster) -> dict[int, tuple[str, ...]]:
    return {mark.ledger_id: mark.missing async for mark in cluster.metadata.under_replication.marks()}


def test_ledgers_of_bookies_that_are_not_registered_are_marked() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_ids = [await write_ledger(client, 3) for _ in range(20)]
            await lose(cluster, "b")
            report = await audits_of(client, dry_run=True).run(Audit.LOST)
            assert (report.ledgers, report.found) == (20, 20)
            assert await marked(cluster) == {}
            audits = audits_of(client)
            report = await audits.run(Audit.LOST)
            assert await marked(cluster) == dict.fromkeys(ledger_ids, ("b",))
            assert list(audits.named) == list(dict.fromkeys([*(await cluster.metadata_of(ledger_ids[0])).segments[0].ensemble]))

    run(main())


def test_a_list_without_an_entry_in_the_middle_is_found_by_the_lists_only() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            whole, ledger_id = await write_ledger(client, 9), await write_ledger(client, 9)
            await cluster.settled(ledger_id, 8)
            await cluster.settled(whole, 8)
            del cluster["b"].ledgers[ledger_id].entries[4]
            assert (await audits_of(client).run(Audit.LEDGERS)).found == 0
            (finding,) = (await audits_of(client).run(Audit.REPLICAS)).findings
            assert (finding.ledger_id, finding.bookies) == (ledger_id, ("b",))
            assert await marked(cluster) == {ledger_id: ("b",)}

    run(main())


@pytest.mark.parametrize("entry_id", [0, 8])
def test_a_missing_end_of_a_fragment_is_found_by_reads(entry_id: int) -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 9)
            await cluster.settled(ledger_id, 8)
            del cluster["c"].ledgers[ledger_id].entries[entry_id]
            (finding,) = (await audits_of(client).run(Audit.LEDGERS)).findings
            assert finding.bookies == ("c",)

    run(main())


def test_a_damaged_end_of_a_fragment_is_recorded_so_that_it_is_replaced() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 9)
            await cluster.settled(ledger_id, 8)
            body = cluster["b"].ledgers[ledger_id].entries[8]
            cluster["b"].ledgers[ledger_id].entries[8] = body[:-1] + bytes([body[-1] ^ 1])
            assert (await audits_of(client, dry_run=True).run(Audit.LEDGERS)).found == 1
            assert await cluster.metadata.damaged_copies.get(ledger_id) is None
            assert (await audits_of(client).run(Audit.LEDGERS)).found == 1
            record = await cluster.metadata.damaged_copies.get(ledger_id)
            assert record is not None
            assert record.copies == {"b": (range(8, 9),)}
            assert await marked(cluster) == {ledger_id: ("b",)}

    run(main())


@pytest.mark.parametrize("digest_type", [DigestType.HMAC, DigestType.CRC32C])
def test_copies_are_not_damaged_because_the_metadata_have_no_password(digest_type: DigestType) -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 9, sizes=(3, 3, 3), digest_type=digest_type)
            await cluster.settled(ledger_id, 8)
            found = await cluster.metadata.ledgers.get(ledger_id)
            oldest = replace(found.value, format_version=1, credentials_stored=False, password=b"", custom={}, ctime_ms=None)
            await cluster.metadata.ledgers.update(
                ledger_id, replace(oldest, creator_token=None, digest_type=DigestType.CRC32), found.version
            )
            for name in "abc":
                cluster[name].when(ListEntriesRequest, "drop")
            for audit in (Audit.LEDGERS, Audit.REPLICAS):
                assert (await audits_of(client).run(audit)).findings == []
            assert await marked(cluster) == {}
            assert await cluster.metadata.damaged_copies.get(ledger_id) is None
            del cluster["c"].ledgers[ledger_id].entries[8]
            (finding,) = (await audits_of(client).run(Audit.LEDGERS)).findings
            assert finding.bookies == ("c",)

    run(main())


def test_a_bookie_that_does_not_answer_proves_nothing() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 3)
            await cluster.settled(ledger_id, 2)
            cluster["b"].when(ReadRequest, "close")
            cluster["b"].when(ListEntriesRequest, "close")
            for audit in (Audit.LEDGERS, Audit.REPLICAS):
                assert (await audits_of(client).run(audit)).found == 0
            assert await marked(cluster) == {}

    run(main())


def test_the_last_segment_of_an_open_ledger_is_left_to_its_writer() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 3, close=False)
            await cluster.settled(ledger_id, 2)
            del cluster["b"].ledgers[ledger_id].entries[2]
            assert (await audits_of(client).run(Audit.LEDGERS)).found == 0

    run(main())


def test_an_entry_without_any_copy_is_named_and_counted() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 9)
            await cluster.settled(ledger_id, 8)
            for name in "abc":
                del cluster[name].ledgers[ledger_id].entries[4]
            metrics = AuditorMetrics(None)
            report = await LedgerAudits(client, CopyPace(client.host.clock, 0), metrics).run(Audit.REPLICAS)
            assert report.findings[0].reason == "no list has entry 4"
            assert metrics.without_copy._value.get() == 1

    run(main())


def test_placement_is_reported_and_not_marked() -> None:
    async def main() -> None:
        async with fake_cluster("") as cluster, cluster.client() as client:
            for name, machine in (("a", "127.0.0.1"), ("b", "127.0.0.1"), ("c", "127.0.0.1")):
                await cluster.add(name, machine)
            ledger_id = await write_ledger(client, 3)
            assert (await audits_of(client).run(Audit.PLACEMENT)).found == 0, "there is one machine only"
            await cluster.add("d", "127.0.0.2")
            (finding,) = (await audits_of(client).run(Audit.PLACEMENT)).findings
            assert finding.ledger_id == ledger_id
            assert "copies of one entry are on machine 127.0.0.1" in finding.reason
            assert await marked(cluster) == {}

    run(main())


def test_an_audit_ends_when_auto_recovery_is_disabled() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            for _ in range(20):
                await write_ledger(client, 1)
            await lose(cluster, "b")
            await cluster.metadata.under_replication.disable()
            report = await audits_of(client, obeys_disable=True).run(Audit.LOST)
            assert not report.is_complete
            assert report.found == 0
            assert (await audits_of(client).run(Audit.LOST)).found == 20, "by hand it runs all the same"

    run(main())


def test_without_bookies_nothing_can_be_said() -> None:
    async def main() -> None:
        async with fake_cluster("") as cluster, cluster.client() as client:
            with pytest.raises(ArgumentError, match="no bookie is registered"):
                await audits_of(client).run(Audit.LOST)

    run(main())


def test_metadata_that_cannot_be_read_are_counted() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 1)
            await cluster.tree.set(f"{cluster.metadata.root}{cluster.metadata.paths.path(ledger_id)}", b"damaged")
            report = await audits_of(client).run(Audit.LOST)
            assert (report.unexamined, list(report.problems)) == (1, [ledger_id])

    run(main())
