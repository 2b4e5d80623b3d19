"""Kills at bad moments: what was acknowledged is there, what was fenced stays fenced, or the bookie says why it does not start."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import JOURNAL, LEDGERS, add_all, check_all, codec, lose_index
from triplicate.errors import CorruptionError, EnvironmentFault, WrongCluster
from triplicate.wire import AddRequest, Status


@pytest.mark.parametrize("seed", range(6))
def test_acknowledged_entries_survive_a_power_loss_before_and_after_flushes(seed: int) -> None:
    async def body(rig: Rig) -> None:
        last = -1
        for _ in range(3):
            client = await rig.connect()
            await add_all(client, 5, last + 1, last + 10)
            last += 10
            await rig.flushed()
            await add_all(client, 5, last + 1, last + 5)
            last += 5
            await rig.restart()
            await check_all(await rig.connect(), 5, last)

    run_rig(body, seed)


@pytest.mark.parametrize("seed", range(6))
def test_fences_survive_a_power_loss_wherever_they_stand(seed: int) -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for ledger_id in (1, 2, 3):
            await add_all(client, ledger_id, 0, 3)
        assert (await client.fence(codec(1))).status is Status.OK
        await rig.flushed()
        assert (await client.fence(codec(2))).status is Status.OK
        await rig.restart()
        client = await rig.connect()
        for ledger_id, status in ((1, Status.FENCED), (2, Status.FENCED), (3, Status.OK)):
            assert await client.add(codec(ledger_id), 4, b"4") is status

    run_rig(body, seed)


def test_journals_behind_the_mark_are_deleted_and_the_mark_never_goes_back() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for entry_id in range(60):
            assert await client.add(codec(), entry_id, b"x" * 20_000) is Status.OK
        await rig.flushed() if rig.bookie.storage.cache.active else None
        await asyncio.sleep(1)
        assert len([name for name in rig.files(JOURNAL) if name.endswith(".journal")]) <= 3
        marks = [journal.read_mark() for journal in rig.bookie.storage.journals]
        assert marks[0] is not None
        before = marks[0]
        journal = rig.bookie.storage.journals[0]
        journal.write_mark(type(journal.synced)(1, 4096, 1), 1)
        assert journal.read_mark() == before
        await rig.restart()
        assert (await (await rig.connect()).read(5, 59)).status is Status.OK

    run_rig(body)


def crash_at_each_step_of_a_flush() -> list[tuple[int, str]]:
    """Kill the bookie before each operation of one flush in turn, restart it, and check everything; returns (step, operation)."""
    tried: list[tuple[int, str]] = []
    for step in range(200):
        happened: list[str] = []

        async def body(rig: Rig, step: int = step, happened: list[str] = happened) -> None:
            client = await rig.connect()
            await add_all(client, 5, 0, 9)
            assert (await client.fence(codec(7))).status is Status.NO_ENTRY
            rig.kill_at(step, happened)
            await asyncio.sleep(2)
            rig.disk.before_operation = None
            if not happened:
                return
            await rig.node.start()
            client = await rig.connect()
            await check_all(client, 5, 9)
            assert await client.add(codec(7), 0) is Status.FENCED
            await rig.flushed() if rig.bookie.storage.cache.active else None
            await rig.restart()
            client = await rig.connect()
            await check_all(client, 5, 9)
            assert await client.add(codec(7), 0) is Status.FENCED

        run_rig(body, seed=step)
        if not happened:
            return tried
        tried.append((step, happened[0]))
    return tried


def test_a_crash_at_any_step_of_a_flush_loses_nothing() -> None:
    tried = crash_at_each_step_of_a_flush()
    kinds = " ".join(operation for _, operation in tried)
    assert ".entries" in kinds
    assert "index.db" in kinds
    assert "mark" in kinds


def test_a_lost_index_is_rebuilt_with_entries_and_fences() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 9)
        await client.fence(codec(7))
        await client.fence(codec(5))
        await rig.flushed()
        await client.add(codec(5), 10, b"10", recovery=True)
        await rig.node.stop()
        lose_index(rig)
        rig.node.crash()
        await rig.node.start()
        assert rig.bookie.storage.stored.rebuilt
        assert rig.facts("bookie.index_rebuild")
        client = await rig.connect()
        await check_all(client, 5, 10)
        assert await client.add(codec(5), 11) is Status.FENCED
        assert await client.add(codec(7), 0) is Status.FENCED

    run_rig(body)


def test_a_lost_index_is_rebuilt_after_every_ledger_was_collected() -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(5)
        assert await (await rig.connect()).add(ledger, 0) is Status.OK
        await rig.flushed()
        await rig.node.stop()
        await rig.restart()
        await rig.delete_ledger(5)
        assert await rig.bookie.collect_garbage() == 1
        await rig.bookie.collect_garbage()
        await rig.node.stop()
        lose_index(rig)
        rig.node.crash()
        await rig.node.start()
        assert rig.bookie.storage.stored.rebuilt

    run_rig(body)


def test_a_damaged_index_is_rebuilt() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 9)
        await rig.flushed()
        await rig.node.stop()
        rig.node.crash()
        # Within the first commit: everything behind it is gone as well, and the mark says that it should be there.
        rig.disk.flip_bit(f"{LEDGERS}/index.db-commits", 100)
        await rig.node.start()
        assert rig.bookie.storage.stored.rebuilt
        await check_all(await rig.connect(), 5, 9)

    run_rig(body)


def test_an_index_older_than_the_mark_is_rebuilt() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 4)
        await rig.flushed()
        old = {name: bytes(rig.disk.names.live[f"{LEDGERS}/{name}"].live.data) for name in ("index.db", "index.db-commits")}
        await add_all(client, 5, 5, 9)
        await rig.flushed()
        await rig.node.stop()
        for name, data in old.items():
            inode = rig.disk.names.live[f"{LEDGERS}/{name}"]
            for image in (inode.live, inode.durable):
                image.data[:] = data
                image.size = len(data)
        rig.node.crash()
        await rig.node.start()
        assert rig.bookie.storage.stored.rebuilt
        await check_all(await rig.connect(), 5, 9)

    run_rig(body)


async def refuses_to_start(rig: Rig, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        await rig.node.start()


def test_a_damaged_group_in_the_middle_of_the_journal_stops_the_start_and_changes_nothing() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 5)
        rig.node.crash()
        rig.disk.flip_bit(f"{JOURNAL}/0000000000000001.journal", 4096 + 60)
        before = rig.files(JOURNAL)
        await refuses_to_start(rig, CorruptionError, "group at byte 4096 is damaged, but group")
        assert rig.files(JOURNAL) == before

    run_rig(body, flush_interval_s=100.0)


def test_a_damaged_last_group_is_a_torn_tail_and_is_reported() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 2)
        rig.node.crash()
        rig.disk.flip_bit(f"{JOURNAL}/0000000000000001.journal", 4096 + 2 * 4096 + 60)
        await rig.node.start()
        (fact,) = rig.facts("bookie.torn_tail")
        assert dict(fact.facts) == {"path": f"{JOURNAL}/0000000000000001.journal", "offset": 4096 + 2 * 4096}
        await check_all(await rig.connect(), 5, 1)

    run_rig(body, flush_interval_s=100.0)


def test_a_damaged_group_at_the_end_of_a_journal_file_that_others_follow_is_named() -> None:
    async def body(rig: Rig) -> None:
        await add_all(await rig.connect(), 5, 0, 2)
        rig.node.crash()
        await rig.node.start()
        await add_all(await rig.connect(), 5, 3, 5)
        rig.node.crash()
        first, second = (f"{JOURNAL}/{number:016}.journal" for number in (1, 2))
        offset = 4096 + 2 * 4096
        rig.disk.flip_bit(first, offset + 60)
        await refuses_to_start(rig, CorruptionError, f"{second}: .* are missing .{first} is damaged from byte {offset} on")

    run_rig(body, flush_interval_s=100.0)


def test_a_missing_journal_file_stops_the_start() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for entry_id in range(60):
            assert await client.add(codec(), entry_id, b"x" * 20_000) is Status.OK
        rig.node.crash()
        names = [name for name in rig.files(JOURNAL) if name.endswith(".journal")]
        rig.disk.names.live.pop(f"{JOURNAL}/{names[0]}")
        await refuses_to_start(rig, CorruptionError, "missing")

    run_rig(body)


def lose(rig: Rig, path: str) -> None:
    rig.disk.names.live.pop(path)
    rig.disk.names.durable.pop(path, None)


def test_a_wiped_directory_is_refused_with_the_cure() -> None:
    async def body(rig: Rig) -> None:
        await add_all(await rig.connect(), 5, 0, 2)
        rig.node.crash()
        for name in rig.files(LEDGERS):
            lose(rig, f"{LEDGERS}/{name}")
        await refuses_to_start(rig, WrongCluster, "wiped or is not mounted: mount the right disk")

    run_rig(body)


def test_a_directory_of_another_cluster_is_refused() -> None:
    async def body(rig: Rig) -> None:
        rig.node.crash()
        inode: Any = rig.disk.names.live[f"{JOURNAL}/VERSION"]
        text = bytes(inode.live.data)
        position = text.index(b"instanceId") + 14
        rig.disk.flip_bit(f"{JOURNAL}/VERSION", position, 1)
        await refuses_to_start(rig, WrongCluster, "says cluster .* the settings say")

    run_rig(body)


def test_a_second_bookie_on_the_same_directories_is_refused() -> None:
    async def body(rig: Rig) -> None:
        from triplicate.bookie import Bookie

        with pytest.raises(EnvironmentFault, match="another bookie runs on this directory"):
            await Bookie.start(rig.node.host.port, rig.bookie.settings, rig.bookie.parts.metadata)  # type: ignore[union-attr]
        assert await (await rig.connect()).add(codec(), 0) is Status.OK

    run_rig(body)


def test_a_full_disk_makes_the_bookie_read_only_and_room_makes_it_writable_again() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 2)
        rig.disk.total_bytes = int(rig.disk.used_bytes() * 1.04)
        await asyncio.sleep(1)
        assert rig.bookie.read_only
        assert await client.add(codec(), 3, b"3") is Status.READ_ONLY
        assert await client.add(codec(), 3, b"3", recovery=True, high_priority=True) is Status.OK
        assert (await client.read(5, 3)).status is Status.OK
        assert (await client.fence(codec(6))).status is Status.NO_ENTRY
        rig.disk.total_bytes = 1 << 40
        await asyncio.sleep(1)
        assert not rig.bookie.read_only
        assert await client.add(codec(), 4, b"4") is Status.OK

    run_rig(body, disk_check_interval_s=0.2, recovery_adds_free_bytes=1000, journal_preallocate_bytes=4 << 20, journal_file_bytes=8 << 20)


def test_a_flush_without_space_loses_nothing_and_goes_on_when_there_is_room() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 2)
        rig.disk.total_bytes = rig.disk.used_bytes() + 5000
        await asyncio.sleep(3)
        assert rig.bookie.read_only
        assert rig.facts("bookie.flush_without_space")
        await check_all(client, 5, 2)
        rig.disk.total_bytes = 1 << 40
        await asyncio.sleep(3)
        assert not rig.bookie.read_only
        assert await client.add(codec(), 3, b"3") is Status.OK
        await rig.restart()
        await check_all(await rig.connect(), 5, 3)

    run_rig(body, disk_check_interval_s=0.2, journal_preallocate_bytes=1 << 20, journal_file_bytes=1 << 20)


def test_a_journal_that_cannot_sync_acknowledges_nothing_more() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 2)
        rig.disk.failing_syncs.append(JOURNAL)
        client.send(AddRequest(5, 3, codec().master_key, codec().encode(3, 2, 1, b"3")))
        with pytest.raises(TimeoutError):
            await client.answer(timeout_s=5)
        assert client.closed
        assert "sync failed" in str(await rig.bookie.wait_failed())
        await asyncio.sleep(3)
        assert await rig.bookie.parts.metadata.bookies.writable() == {}
        await rig.node.stop()
        await rig.restart()
        await check_all(await rig.connect(), 5, 2)

    run_rig(body)


def test_deleted_ledgers_are_collected_and_their_files_go() -> None:
    async def body(rig: Rig) -> None:
        kept, gone = await rig.create_ledger(1), await rig.create_ledger(2)
        client = await rig.connect()
        for entry_id in range(20):
            assert await client.add(kept, entry_id, b"x" * 3000) is Status.OK
            assert await client.add(gone, entry_id, b"x" * 3000) is Status.OK
        await asyncio.sleep(1)
        assert await rig.bookie.collect_garbage() == 0
        await rig.delete_ledger(2)
        assert await rig.bookie.collect_garbage() == 1
        assert (await client.read(2, 0)).status is Status.NO_LEDGER
        assert (await client.read(1, 19)).status is Status.OK
        await rig.delete_ledger(1)
        await rig.bookie.collect_garbage()
        for _ in range(3):
            await asyncio.sleep(1)
            await rig.bookie.collect_garbage()
        logs = [name for name in rig.files(LEDGERS) if name.endswith(".entries")]
        assert len(logs) <= 1

    run_rig(body)


def test_a_ledger_deleted_while_fenced_does_not_come_back() -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(2)
        client = await rig.connect()
        assert await client.add(ledger, 0) is Status.OK
        await client.fence(ledger)
        await rig.delete_ledger(2)
        assert await rig.bookie.collect_garbage() == 1
        assert await client.add(ledger, 1) is Status.FENCED
        assert (await client.read(2, 0)).status is Status.NO_LEDGER

    run_rig(body)


def test_metadata_out_of_reach_deletes_nothing() -> None:
    async def body(rig: Rig) -> None:
        from triplicate.errors import ConnectionLost, MetadataError

        ledger = await rig.create_ledger(2)
        client = await rig.connect()
        assert await client.add(ledger, 0) is Status.OK

        class Silent:
            def ids(self) -> Any:
                return self

            def __aiter__(self) -> Any:
                return self

            async def __anext__(self) -> int:
                raise StopAsyncIteration

            async def refresh(self) -> None:
                return None

            async def exists(self, ledger_id: int) -> bool:
                raise ConnectionLost("gone")

        garbage = rig.bookie.parts.garbage
        assert garbage is not None
        metadata = type("Metadata", (), {"ledgers": Silent()})()
        garbage.metadata = metadata
        with pytest.raises(MetadataError):
            await garbage.collect()
        assert (await client.read(2, 0)).status is Status.OK

    run_rig(body)


def test_a_metadata_server_that_is_behind_deletes_nothing() -> None:
    async def body(rig: Rig) -> None:
        from tests.unit.metadata.lagging import LaggingTree
        from triplicate.metadata import ClusterMetadata

        ledger = await rig.create_ledger(2)
        client = await rig.connect()
        assert await client.add(ledger, 0) is Status.OK
        garbage = rig.bookie.parts.garbage
        assert garbage is not None
        host = rig.node.host
        assert host is not None
        tree = LaggingTree(rig.cluster.store)
        garbage.metadata = await ClusterMetadata.open(tree, host.port)
        tree.behind = {"/ledgers/00/0000/L0002": None}
        assert [each async for each in garbage.metadata.ledgers.ids()] == []
        assert await garbage.collect() == 0
        assert (await client.read(2, 0)).status is Status.OK
        await rig.delete_ledger(2)
        assert await garbage.collect() == 1

    run_rig(body)


def test_metadata_that_became_another_clusters_deletes_nothing() -> None:
    async def body(rig: Rig) -> None:
        from triplicate.errors import WrongCluster

        ledger = await rig.create_ledger(2)
        client = await rig.connect()
        assert await client.add(ledger, 0) is Status.OK
        await rig.delete_ledger(2)
        garbage = rig.bookie.parts.garbage
        assert garbage is not None
        tree = garbage.metadata.tree
        ours, _ = await tree.get("/ledgers/INSTANCEID")
        await tree.set("/ledgers/INSTANCEID", b"another")
        with pytest.raises(WrongCluster, match="is another now"):
            await garbage.collect()
        assert (await client.read(2, 0)).status is Status.OK
        await tree.set("/ledgers/INSTANCEID", ours)
        assert await garbage.collect() == 1

    run_rig(body)


def test_a_session_that_is_over_is_opened_again_where_the_bookie_is_told_how() -> None:
    async def body(rig: Rig) -> None:
        from triplicate.bookie import Bookie
        from triplicate.metadata import ClusterMetadata, MemoryTree

        await rig.node.stop()
        host = rig.node.host
        assert host is not None
        trees: list[MemoryTree] = []

        async def open_metadata() -> ClusterMetadata:
            trees.append(MemoryTree(rig.cluster.store))
            return await ClusterMetadata.open(trees[-1], host.port)

        async def live() -> None:
            bookie = await Bookie.start(host.port, rig.bookie.settings, await open_metadata(), reopen=open_metadata)
            for _ in range(2):
                rig.cluster.store.expire(trees[-1].session_id)
                await asyncio.sleep(8)
                metadata = await open_metadata()
                assert list(await metadata.bookies.writable()) == ["bookie-1"]
                trees.pop()
                await metadata.aclose()
            await bookie.stop()

        await host.call(live())

    run_rig(body)


def test_a_lost_registration_comes_back() -> None:
    async def body(rig: Rig) -> None:
        bookies = rig.bookie.parts.metadata.bookies
        await bookies.unregister("bookie-1")
        assert await bookies.writable() == {}
        await asyncio.sleep(3)
        assert list(await bookies.writable()) == ["bookie-1"]

    run_rig(body)
