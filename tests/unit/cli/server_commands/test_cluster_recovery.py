"""The list of ledgers that lack copies or have damaged ones."""

from __future__ import annotations

import json

from tests.unit.client.cluster import fake_cluster, run
from triplicate.cli.server_commands.cluster_recovery import _lacking_cells, lacking_ledgers
from triplicate.metadata import RepairProgress
from triplicate.metadata.core.own_paths import damaged_ledger_path


def test_recorded_damage_is_listed_with_bookies_and_numbers_of_entries() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            cluster_metadata = cluster.metadata
            await cluster_metadata.under_replication.mark(7, ["b"])
            await cluster_metadata.damaged_copies.report(7, "b", [range(3, 5), range(9, 10)])
            await cluster_metadata.damaged_copies.report(8, "c", [range(1)])
            await cluster_metadata.under_replication.mark(9, ["a"])
            await cluster_metadata.repair_notes.record(8, "failed: no intact copy", "worker")
            listed = await lacking_ledgers(client)
            assert [(row["ledger"], row["missing"], row["damaged"], row["reason"]) for row in listed] == [
                (7, ["b"], {"b": 3}, None),
                (8, [], {"c": 1}, "failed: no intact copy"),
                (9, ["a"], {}, None),
            ]
            assert [row["ledger"] for row in await lacking_ledgers(client, "c")] == [8]
            assert [row["ledger"] for row in await lacking_ledgers(client, "a")] == [9]

    run(main())


def test_the_progress_of_a_repair_is_listed_while_it_runs() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            marks, records = cluster.metadata.under_replication, cluster.metadata.repair_notes.progress
            for ledger_id in (7, 8):
                await marks.mark(ledger_id, ["b"])
            now_ms = client.host.clock.wall_us() // 1000
            await records.write(7, RepairProgress("worker", now_ms - 5000, now_ms, 40, 4 << 20, 100, 12.0, 1 << 20))
            await records.write(8, RepairProgress("dead", now_ms - 5000, now_ms, 40, 4 << 20, 100, 12.0, 1 << 20))
            lock = await marks.lock(7, "worker")
            assert lock is not None
            running, marked = await lacking_ledgers(client)
            assert running["progress"] is not None
            assert (running["progress"]["entries"], running["progress"]["left_s"]) == (40, 5.0)
            # Without a lock, no repair runs.
            assert marked["progress"] is None
            json.dumps([running, marked])
            assert [_lacking_cells(row)[5] for row in (running, marked)] == ["40 of 100, 1.0 MiB/s, 5 s left", "-"]

    run(main())


def test_a_record_of_a_later_release_is_listed_with_the_reason() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            path = damaged_ledger_path(cluster.metadata.own_root, 7)
            await cluster.metadata.tree.create(path, b'{"v":2}', parents=True)
            (row,) = await lacking_ledgers(client)
            assert (row["ledger"], row["damaged"]) == (7, {})
            assert "format 2" in row["reason"]

    run(main())
