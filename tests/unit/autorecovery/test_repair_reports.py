"""The progress of a repair is recorded at intervals, and not longer than it runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from tests.unit.autorecovery.recovery_rig import is_marked, ledger_that_lacks_b, worker_of
from tests.unit.client.cluster import fake_cluster, run
from triplicate.autorecovery import RepairOutcome, repair_reports
from triplicate.autorecovery.repair_reports import reported
from triplicate.errors import ConnectionLost, LedgerError
from triplicate.metadata import RepairProgress
from triplicate.metadata.repair_progress import RepairProgressRecords
from triplicate.wire import AddRequest

ENTRIES = 30


@dataclass
class Repair:
    entries: int = 0
    size_bytes: int = 0
    expected_entries: int | None = None


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_reports, "REPORT_EVERY_S", 0.01)


def test_a_repair_that_runs_records_its_counts_rates_and_end() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            records, repair = cluster.metadata.repair_notes.progress, Repair()

            async def found(entries: int) -> RepairProgress:
                while (progress := await records.get(7)) is None or progress.entries < entries:
                    await asyncio.sleep(0.001)
                return progress

            async with reported(client, 7, "worker", repair):
                await found(0)
                repair.entries, repair.size_bytes, repair.expected_entries = 10, 1000, 20
                progress = await found(10)
                assert (progress.worker, progress.entries, progress.size_bytes, progress.expected_entries) == ("worker", 10, 1000, 20)
                assert progress.entries_per_s > 0
                assert progress.bytes_per_s == pytest.approx(100 * progress.entries_per_s, rel=0.1)
                assert progress.left_s is not None
                assert progress.since_ms <= progress.time_ms
            assert await records.get(7) is None

    run(main())


def test_a_repair_that_fails_raises_its_own_error_and_leaves_no_record() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:

            async def repair() -> None:
                async with reported(client, 7, "worker", Repair()):
                    while await cluster.metadata.repair_notes.progress.get(7) is None:
                        await asyncio.sleep(0.001)
                    raise LedgerError("why")

            with pytest.raises(LedgerError, match="why"):
                await repair()
            assert await cluster.metadata.repair_notes.progress.get(7) is None

    run(main())


def test_a_metadata_store_that_fails_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(records: RepairProgressRecords, ledger_id: int, progress: RepairProgress) -> None:
        raise ConnectionLost("away")

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            monkeypatch.setattr(RepairProgressRecords, "write", fails)
            async with reported(client, 7, "worker", Repair()):
                while len(cluster.told("autorecovery.progress_not_recorded")) < 2:
                    await asyncio.sleep(0.001)
            assert cluster.told("autorecovery.progress_not_recorded")[0] == {"ledger": 7, "error": "away"}

    run(main())


def test_a_worker_records_how_many_entries_it_will_have_copied() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await ledger_that_lacks_b(cluster, client, ENTRIES)
            await client.metadata.under_replication.mark(ledger_id, ["b"])
            cluster["d"].when(AddRequest, "hold")
            async with worker_of(client) as worker:
                repairing = asyncio.ensure_future(worker.repair(ledger_id))
                # On a busy machine the first record may be older than the worker's look at the metadata.
                while (
                    progress := await cluster.metadata.repair_notes.progress.get(ledger_id)
                ) is None or progress.expected_entries is None:
                    await asyncio.sleep(0.001)
                assert (progress.worker, progress.expected_entries) == ("worker", ENTRIES)
                cluster["d"].obey()
                assert (await repairing).outcome is RepairOutcome.REPAIRED
            assert await cluster.metadata.repair_notes.progress.get(ledger_id) is None
            assert not await is_marked(cluster, ledger_id)

    run(main())
