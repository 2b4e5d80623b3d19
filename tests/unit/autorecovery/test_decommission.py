"""Decommissions over controlled bookies: moved ledgers, refusals, writers, verdicts and interruptions."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.autorecovery.decommission_rig import add_cookie, naming, obedient_cluster
from tests.unit.autorecovery.recovery_rig import PROMPT, absent_copies, is_marked, lose, worker_of, write_ledger
from tests.unit.client.cluster import FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.autorecovery import DecommissionPhase, DecommissionProgress, RepairOutcome, decommission, decommission_bookie
from triplicate.client.write import departures
from triplicate.errors import ArgumentError, RequestTimeout
from triplicate.ledger import LedgerMetadata, LedgerState
from triplicate.metadata import RequestChange, Stat, own_paths
from triplicate.metadata.read_only_requests import ReadOnlyRequests
from triplicate.wire import BookieInfoRequest, ListEntriesRequest, Status

PATIENT = replace(PROMPT, open_ledger_grace_s=3600)
"""Settings under which no ledger is fenced during a test, however slow the machine is."""
SHAPES = [(3, 3, 2), (4, 2, 2), (3, 2, 2), (2, 2, 1)]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decommission, "POLL_S", 0.02)


async def check_moved(cluster: FakeCluster, ledger_ids: list[int], gone: str) -> None:
    assert await naming(cluster, ledger_ids, gone) == []
    for ledger_id in ledger_ids:
        assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == []
        assert not await is_marked(cluster, ledger_id)


def test_a_running_bookie_is_emptied_and_its_cookie_removed() -> None:
    async def main() -> None:
        async with obedient_cluster("abcde") as cluster, cluster.client() as client:
            ledger_ids = [await write_ledger(client, 20 + number, sizes=SHAPES[number % 4]) for number in range(12)]
            for ledger_id in ledger_ids:
                metadata = await cluster.metadata_of(ledger_id)
                await cluster.settled(ledger_id, metadata.last_entry_id, metadata.write_quorum)
            named = await naming(cluster, ledger_ids, "b")
            listed = sum(len(ledger.entries) for ledger in cluster["b"].ledgers.values())
            await cluster.metadata.network_locations.set("b", "/rack-1")
            phases: list[DecommissionPhase] = []
            progress = DecommissionProgress(on_change=lambda: phases.append(progress.phase))
            report = await decommission_bookie(client, ["b"], settings=PROMPT, progress=progress)
            assert (report.is_removed, report.obstacles, report.refused) == (True, (), ())
            assert [need.ledger_id for need in report.needs] == named
            assert (report.ledgers, report.ledgers_checked, report.entries_checked) == (len(named), 12, listed)
            assert (report.remaining_bookies, report.remaining_machines) == (4, 1)
            assert progress.bytes_copied == report.size_bytes > 0
            assert list(dict.fromkeys(phases)) == list(DecommissionPhase)
            await check_moved(cluster, ledger_ids, "b")
            assert await cluster.metadata.cookies.get("b") is None
            assert (await cluster.metadata.network_locations.read()).locations == {}
            # It still runs: without the request it would be writable again.
            assert report.running == ("b",)
            assert await cluster.metadata.read_only_requests.bookie_ids() == ["b"]
            await lose(cluster, "b")
            again = await decommission_bookie(client, ["b"], settings=PROMPT)
            assert (again.is_removed, again.running) == (True, ())
            assert await cluster.metadata.read_only_requests.bookie_ids() == []

    run(main())


def test_a_dead_bookie_and_a_running_one_are_removed_together() -> None:
    async def main() -> None:
        async with obedient_cluster("abcde") as cluster, cluster.client() as client:
            ledger_ids = [await write_ledger(client, 30) for _ in range(8)]
            for ledger_id in ledger_ids:
                await cluster.settled(ledger_id, 29)
            await lose(cluster, "a")
            report = await decommission_bookie(client, ["a", "e"], settings=PROMPT)
            assert (report.is_removed, report.running) == (True, ("e",))
            for gone in "ae":
                await check_moved(cluster, ledger_ids, gone)
            assert await cluster.metadata.cookies.bookie_ids() == ["b", "c", "d"]

    run(main())


def test_too_few_bookies_are_refused_before_anything_is_changed() -> None:
    async def main() -> None:
        async with obedient_cluster("abc") as cluster, cluster.client() as client:
            ledger_id, other = await write_ledger(client, 3), await write_ledger(client, 3, sizes=(2, 2, 2))
            before = cluster.store.dump()
            report = await decommission_bookie(client, ["b"], settings=PROMPT)
            refused = {one.ledger_id: one for one in report.refused}
            assert (refused[ledger_id].needed, refused[ledger_id].there, sorted(refused[ledger_id].kept)) == (1, 0, ["a", "c"])
            assert refused[ledger_id].reason == "too few writable bookies outside the ensemble remain"
            assert not report.is_removed
            assert (report.remaining_bookies, report.remaining_machines) == (2, 1)
            assert other not in refused
            assert cluster.store.dump() == before

    run(main())


def test_of_two_decommissions_at_a_time_one_is_refused_where_both_would_leave_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    change = ReadOnlyRequests.change

    async def behind_another(requests: ReadOnlyRequests, bookie_id: str, *, leaving: bool) -> RequestChange | None:
        await change(requests, "d", leaving=True)
        return await change(requests, bookie_id, leaving=leaving)

    async def main() -> None:
        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            ledger_ids = [await write_ledger(client, 3) for _ in range(6)]
            monkeypatch.setattr(ReadOnlyRequests, "change", behind_another)
            report = await decommission_bookie(client, ["a"], settings=PROMPT)
            assert report.is_refused
            assert not report.is_removed
            # Where d stores copies as well, two bookies are needed.
            assert {one.ledger_id for one in report.refused} == {
                *await naming(cluster, ledger_ids, "a"),
                *await naming(cluster, ledger_ids, "d"),
            }
            assert await cluster.metadata.read_only_requests.bookie_ids() == ["d"], "its own request is withdrawn"

    run(main())


def test_a_request_that_was_there_before_stays_where_a_decommission_is_refused_late(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            for _ in range(6):
                await write_ledger(client, 3)
            requests = cluster.metadata.read_only_requests
            await requests.request("a")
            path = own_paths.read_only_request_path(cluster.metadata.own_root, "a")
            before, _ = await cluster.metadata.tree.get(path)
            read = ReadOnlyRequests.read

            async def behind_another(these: ReadOnlyRequests, bookie_id: str) -> Stat | None:
                await these.request("d")
                return await read(these, bookie_id)

            monkeypatch.setattr(ReadOnlyRequests, "read", behind_another)
            assert (await decommission_bookie(client, ["a"], settings=PROMPT)).is_refused
            assert await requests.bookie_ids() == ["a", "d"]
            assert await requests.leaving() == [], "workers would move the copies of a bookie that stays"
            assert (await cluster.metadata.tree.get(path))[0] == before

    run(main())


def test_too_few_machines_are_refused() -> None:
    async def main() -> None:
        async with fake_cluster("") as cluster:
            for number, name in enumerate("abc", start=1):
                await cluster.add(name, f"127.0.0.{number}")
            async with cluster.client() as client:
                ledger_id = await write_ledger(client, 3)
                await cluster.add("d", "127.0.0.1")
                (refused,) = (await decommission_bookie(client, ["b"], settings=PROMPT)).refused
                assert (refused.ledger_id, refused.needed, refused.there) == (ledger_id, 1, 1)
                assert refused.reason == "the rules of placement forbid the writable bookies that remain: d on 127.0.0.1"
                # a shares its machine with d, which replaces it.
                assert (await decommission_bookie(client, ["a"], settings=PROMPT, dry_run=True)).refused == ()

    run(main())


def test_a_dry_run_changes_nothing() -> None:
    async def main() -> None:
        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            ledger_ids = [await write_ledger(client, 10) for _ in range(4)]
            report = await decommission_bookie(client, ["b"], settings=PROMPT, dry_run=True)
            assert [need.ledger_id for need in report.needs] == await naming(cluster, ledger_ids, "b")
            assert not report.is_removed
            assert await cluster.metadata.read_only_requests.bookie_ids() == []

    run(main())


def test_a_writer_at_work_moves_and_is_not_fenced() -> None:
    async def main() -> None:
        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            gone = writer.metadata.last_segment.ensemble[1]
            appended: list[int] = []

            async def write() -> None:
                while True:
                    appended.append(await writer.append(b"x" * 100))
                    await asyncio.sleep(0.001)

            writing = asyncio.create_task(write())
            await eventually(lambda: len(appended) > 20)
            report = await decommission_bookie(client, [gone], settings=PATIENT)
            assert report.is_removed
            before = len(appended)
            await eventually(lambda: len(appended) > before + 20)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            assert cluster.fenced(writer.ledger_id) == []
            last = await writer.close()
            assert last >= appended[-1]
            await check_moved_soon(cluster, writer.ledger_id, gone)

    run(main())


async def check_moved_soon(cluster: FakeCluster, ledger_id: int, gone: str) -> None:
    """The last copies of a writer may still be on their way."""
    metadata = await cluster.metadata_of(ledger_id)
    await eventually(lambda: not absent_copies(cluster, ledger_id, metadata))
    await check_moved(cluster, [ledger_id], gone)


def test_an_idle_writer_moves_and_is_not_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(departures, "CHECK_INTERVAL_S", 0.02)

    async def main() -> None:
        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            for _ in range(5):
                await writer.append(b"idle")
            gone = writer.metadata.last_segment.ensemble[0]
            report = await decommission_bookie(client, [gone], settings=PATIENT)
            assert report.is_removed
            assert cluster.fenced(writer.ledger_id) == []
            assert await writer.append(b"more") == 5
            await writer.close()
            await check_moved_soon(cluster, writer.ledger_id, gone)

    run(main())


def test_a_writer_that_stays_is_named_and_never_fenced() -> None:
    async def main() -> None:
        async def lives(metadata: LedgerMetadata) -> bool:
            return True

        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            left = await write_ledger(client, 5, close=False)
            gone = (await cluster.metadata_of(left)).last_segment.ensemble[0]
            progress = DecommissionProgress()
            report = await decommission_bookie(client, [gone], settings=PROMPT, stall_s=0.3, has_living_writer=lives, progress=progress)
            (obstacle,) = report.obstacles
            assert (obstacle.ledger_id, obstacle.may_pass, report.is_removed) == (left, True, False)
            assert "whose writer lives" in obstacle.reason
            assert progress.obstacles == report.obstacles
            assert cluster.fenced(left) == []
            assert await cluster.metadata.cookies.get(gone) is not None
            # Its writer is gone by now: the second attempt goes on and ends.
            assert (await decommission_bookie(client, [gone], settings=PROMPT)).is_removed
            assert (await cluster.metadata_of(left)).state is LedgerState.CLOSED
            await check_moved(cluster, [left], gone)

    run(main())


def test_a_ledger_without_a_good_copy_keeps_the_cookie() -> None:
    async def main() -> None:
        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            lost, whole = await write_ledger(client, 10), await write_ledger(client, 10)
            for ledger_id in (lost, whole):
                await cluster.settled(ledger_id, 9)
            ensemble = (await cluster.metadata_of(lost)).last_segment.ensemble
            for name in ensemble:
                del cluster[name].ledgers[lost].entries[4]
            report = await decommission_bookie(client, [ensemble[0]], settings=PROMPT)
            (obstacle,) = report.obstacles
            assert (obstacle.ledger_id, obstacle.may_pass) == (lost, False)
            assert "entry 4" in obstacle.reason
            assert not report.is_removed
            assert await cluster.metadata.cookies.get(ensemble[0]) is not None
            assert await naming(cluster, [whole], ensemble[0]) == []

    run(main())


def test_entries_that_only_the_leaving_bookie_has_are_copied_before_the_verdict() -> None:
    """The ledger names the bookie no more, and one of the others lost an entry that the bookie still has."""

    async def main() -> None:
        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 10)
            await cluster.settled(ledger_id, 9)
            found = await cluster.metadata.ledgers.get(ledger_id)
            ensemble = found.value.last_segment.ensemble
            (outside,) = set("abcd") - set(ensemble)
            for name in ensemble[1:]:
                cluster[outside].ledgers[ledger_id] = cluster[name].ledgers[ledger_id]
            cluster[outside].ledgers[ledger_id] = replace(
                cluster[outside].ledgers[ledger_id], entries=dict(cluster[outside].ledgers[ledger_id].entries)
            )
            del cluster[ensemble[1]].ledgers[ledger_id].entries[6]
            report = await decommission_bookie(client, [outside], settings=PROMPT)
            assert report.is_removed
            assert report.entries_checked == 10
            assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == []

    run(main())


def test_a_silent_bookie_holds_up_the_verdict() -> None:
    async def main() -> None:
        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 10)
            await cluster.settled(ledger_id, 9)
            gone, *kept = (await cluster.metadata_of(ledger_id)).last_segment.ensemble
            await decommission_bookie(client, [gone], settings=PROMPT, dry_run=True)
            cluster[kept[0]].when(ListEntriesRequest, Status.IO_ERROR)
            report = await decommission_bookie(client, [gone], settings=PROMPT, stall_s=0.3)
            assert not report.is_removed
            (obstacle,) = report.obstacles
            assert f"bookie {kept[0]} should hold entries that {gone} has, and does not answer" in obstacle.reason
            cluster[kept[0]].obey()
            assert (await decommission_bookie(client, [gone], settings=PROMPT)).is_removed

    run(main())


def test_an_interrupted_decommission_goes_on() -> None:
    async def main() -> None:
        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            ledger_ids = [await write_ledger(client, 40) for _ in range(6)]
            for ledger_id in ledger_ids:
                await cluster.settled(ledger_id, 39)
            named = await naming(cluster, ledger_ids, "b")
            copied = asyncio.Event()
            progress = DecommissionProgress(on_change=lambda: copied.set() if progress.bytes_copied else None)
            one = replace(PROMPT, ledgers_at_once=1)
            task = asyncio.create_task(decommission_bookie(client, ["b"], settings=one, progress=progress))
            await copied.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert await cluster.metadata.cookies.get("b") is not None
            assert await cluster.metadata.read_only_requests.leaving() == ["b"]
            for ledger_id in named:
                assert await cluster.metadata.under_replication.worker_of(ledger_id) is None
            report = await decommission_bookie(client, ["b"], settings=PROMPT)
            assert report.is_removed
            await check_moved(cluster, ledger_ids, "b")

    run(main())


def test_other_workers_of_the_cluster_move_the_ledgers_of_a_leaving_bookie() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 10)
            await cluster.settled(ledger_id, 9)
            gone = (await cluster.metadata_of(ledger_id)).last_segment.ensemble[2]
            await cluster.set_readonly(gone, True)
            await cluster.metadata.under_replication.mark(ledger_id, [gone])
            await cluster.metadata.read_only_requests.request(gone, leaving=True)
            async with worker_of(client) as worker:
                assert (await worker.repair(ledger_id)).outcome is RepairOutcome.REPAIRED
            await check_moved(cluster, [ledger_id], gone)

    run(main())


def test_a_withdrawn_request_ends_the_decommission() -> None:
    async def main() -> None:
        async def withdraw(metadata: LedgerMetadata) -> bool:
            await cluster.metadata.read_only_requests.withdraw(gone)
            await cluster.set_readonly(gone, False)
            return True

        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            left = await write_ledger(client, 5, close=False)
            gone = (await cluster.metadata_of(left)).last_segment.ensemble[0]
            with pytest.raises(ArgumentError, match="writable again"):
                await decommission_bookie(client, [gone], settings=PROMPT, has_living_writer=withdraw)
            assert await cluster.metadata.cookies.get(gone) is not None

    run(main())


def test_a_bookie_that_stays_writable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decommission, "READ_ONLY_WAIT_S", 0.05)

    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            await add_cookie(cluster, "b")
            with pytest.raises(RequestTimeout, match="b is still writable"):
                await decommission_bookie(client, ["b"], settings=PROMPT)

    run(main())


def test_unknown_bookies_are_refused() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            with pytest.raises(ArgumentError, match="nobody has no cookie and is not registered"):
                await decommission_bookie(client, ["nobody"])
            with pytest.raises(ArgumentError, match="name the bookies"):
                await decommission_bookie(client, [])

    run(main())


def test_a_ledger_that_cannot_be_decoded_keeps_the_cookie() -> None:
    async def main() -> None:
        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 3)
            await cluster.metadata.tree.set(f"{cluster.metadata.root}{cluster.metadata.paths.path(ledger_id)}", b"broken")
            report = await decommission_bookie(client, ["b"], settings=PROMPT)
            assert [(one.ledger_id, one.reason) for one in report.obstacles] == [(ledger_id, "its metadata cannot be decoded")]

    run(main())


def test_a_decommission_whose_copies_do_not_fit_is_refused_with_numbers() -> None:
    async def main() -> None:
        async with obedient_cluster("abc") as cluster, cluster.client() as client:
            await write_ledger(client, 20)
            await cluster.add("d")
            for name in "acd":
                cluster[name].total_bytes = 1000
                cluster[name].free_bytes = 10
            report = await decommission_bookie(client, ["b"], settings=PROMPT, dry_run=True)
            assert report.room is not None
            assert report.room.needed_bytes == sum(need.size_bytes for need in report.needs) > 30
            assert (report.room.free_bytes, report.room.certain_bytes, report.is_refused) == (30, 10, True)
            report = await decommission_bookie(client, ["b"], settings=PROMPT)
            assert (report.is_refused, report.is_removed) == (True, False)
            assert await cluster.metadata.read_only_requests.bookie_ids() == [], "nothing was changed"

    run(main())


def test_a_bookie_that_does_not_say_its_free_disk_refuses_no_decommission() -> None:
    async def main() -> None:
        async with obedient_cluster("abc") as cluster, cluster.client() as client:
            await write_ledger(client, 20)
            for name in "de":
                await cluster.add(name)
            for name in "acd":
                cluster[name].free_bytes = 0
            cluster["e"].when(BookieInfoRequest, Status.IO_ERROR)
            report = await decommission_bookie(client, ["b"], settings=PROMPT, dry_run=True)
            assert report.room is not None
            assert (report.room.silent, report.is_refused) == (("e",), False)

    run(main())
