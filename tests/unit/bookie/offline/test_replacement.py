"""A bookie whose disks were lost and replaced: it says "unknown" where a disk may have said yes, and is not started by mistake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import NAME, Rig, run_rig
from tests.waiting import eventually
from triplicate.bookie import Replacement, mark_visited
from triplicate.errors import ConfigError, EnvironmentFault, WrongCluster
from triplicate.ledger import DigestType, EntryCodec
from triplicate.metadata import ClusterMetadata, MemoryTree
from triplicate.wire import ListEntriesRequest, ReadLacRequest, ReadRequest, Status
from triplicate_simulator import small_bookie_settings
from triplicate_simulator.cluster.simulated_cluster import JOURNAL_DIRECTORY, LEDGER_DIRECTORY

UNKNOWN = Status.UNKNOWN_LEDGER_STATE
TRASH_PERIOD_S = 1000.0


@asynccontextmanager
async def metadata_of(rig: Rig) -> AsyncIterator[ClusterMetadata]:
    metadata = await ClusterMetadata.open(MemoryTree(rig.cluster.store), rig.client_host.port)
    try:
        yield metadata
    finally:
        await metadata.aclose()


def lose_disks(rig: Rig) -> None:
    """The machine stops, and comes back with empty disks."""
    rig.node.crash()
    names = rig.disk.names
    for tree in (names.live, names.durable):
        for path in [path for path in tree if path != "/"]:
            del tree[path]
    for directory in (JOURNAL_DIRECTORY, LEDGER_DIRECTORY):
        rig.disk.make_directory(directory)


async def session_over(rig: Rig) -> None:
    await asyncio.sleep(rig.cluster.options.session_high_s + 1)


async def replaced(rig: Rig, settings_of: str = NAME) -> int:
    """`format --replace` on the bookie's machine."""
    host = rig.world.start_host(NAME)
    try:
        async with metadata_of(rig) as metadata:
            replacement = Replacement(host.port, small_bookie_settings(settings_of), metadata)
            return (await host.call(replacement.carry_out(), name="format")).number
    finally:
        host.crash(keep_unsynced=True)


async def lost_and_replaced(rig: Rig) -> None:
    lose_disks(rig)
    await session_over(rig)
    await replaced(rig)
    await rig.node.start()


def test_a_bookie_does_not_start_on_disks_that_lost_their_data() -> None:
    async def body(rig: Rig) -> None:
        lose_disks(rig)
        await session_over(rig)
        refusal = r"/data/journal: it is not there, and bookie bookie-1 kept data in it.*bookie format --config FILE --replace"
        with pytest.raises(WrongCluster, match=refusal):
            await rig.node.start()
        assert rig.files("/data") == ["journal", "ledgers"], "nothing was made"

    run_rig(body)


def test_a_replaced_bookie_answers_unknown_for_what_it_held_never_a_no() -> None:
    async def body(rig: Rig) -> None:
        codec = await rig.create_ledger(5)
        client = await rig.connect()
        assert await client.add(codec, 0) is Status.OK
        await lost_and_replaced(rig)
        old, new = await rig.connect(), await rig.connect_v3()
        poll = ReadRequest(5, -1, previous_lac=-1, timeout_ms=10, piggyback=True)
        for request in (ReadRequest(5, 0), ReadRequest(5, 7), ReadRequest(5, -1), ReadLacRequest(5), ListEntriesRequest(5), poll):
            assert (await new.ask(request)).status is UNKNOWN, request
        assert (await old.read(5, 0)).status is Status.IO_ERROR
        assert (await old.batch(5, 0)).status is Status.IO_ERROR
        assert (await new.fence(codec)).status is UNKNOWN
        assert (await new.read(6, 0)).status is Status.NO_LEDGER, "no metadata names it for ledger 6"

    run_rig(body)


def test_a_fence_that_was_lost_lets_no_old_writer_through() -> None:
    async def body(rig: Rig) -> None:
        codec = await rig.create_ledger(5)
        client = await rig.connect()
        assert (await client.fence(codec)).status is Status.NO_ENTRY
        await lost_and_replaced(rig)
        client = await rig.connect()
        assert await client.add(codec, 0) is Status.READ_ONLY
        assert await client.add(codec, 0, recovery=True) is Status.OK
        assert (await client.read(5, 0)).status is Status.OK
        assert await client.add(codec, 1) is Status.READ_ONLY

    run_rig(body)


def test_what_a_replaced_bookie_received_since_is_served_and_the_rest_stays_unknown_over_a_crash() -> None:
    async def body(rig: Rig) -> None:
        codec = await rig.create_ledger(5)
        assert await (await rig.connect()).add(codec, 0) is Status.OK
        await lost_and_replaced(rig)
        assert await (await rig.connect()).add(codec, 7, recovery=True) is Status.OK
        for further in (8, 9):
            # The first time it stands in the journal only, the second in entry logs.
            await rig.restart()
            client = await rig.connect_v3()
            assert (await client.read(5, 7)).status is Status.OK
            assert (await client.read(5, 0)).status is UNKNOWN
            assert (await client.read(5, -1)).status is UNKNOWN
            assert (await client.ask(ListEntriesRequest(5))).status is UNKNOWN
            assert await client.add(codec, further, recovery=True) is Status.OK
            await rig.flushed()

    run_rig(body, flush_interval_s=3.0)


def test_a_ledger_made_since_is_served_as_by_any_bookie() -> None:
    async def body(rig: Rig) -> None:
        async with metadata_of(rig) as metadata:
            before = await metadata.ledgers.new_id()
            await rig.create_ledger(before)
            chosen = before + 1_000_000
            await rig.create_ledger(chosen)
            await lost_and_replaced(rig)
            since = await metadata.ledgers.new_id()
        codec = await rig.create_ledger(since)
        client = await rig.connect_v3()
        assert await client.add(codec, 0) is Status.OK
        await rig.restart()
        client = await rig.connect_v3()
        assert (await client.read(since, 1)).status is Status.NO_ENTRY
        assert await client.add(codec, 1) is Status.OK
        for ledger_id in (before, chosen):
            assert (await client.read(ledger_id, 0)).status is UNKNOWN, "an id of somebody's choice makes no ledger new"

    run_rig(body)


def test_after_the_visit_it_denies_again_what_it_does_not_hold() -> None:
    async def body(rig: Rig) -> None:
        codec = await rig.create_ledger(5)
        await lost_and_replaced(rig)
        client = await rig.connect_v3()
        assert (await client.read(5, 0)).status is UNKNOWN
        assert await client.add(codec, 0, recovery=True) is Status.OK
        async with metadata_of(rig) as metadata:
            assert await mark_visited(metadata, NAME)
            assert not await mark_visited(metadata, NAME)
        await asyncio.sleep(5)
        assert (await client.read(5, 1)).status is Status.NO_ENTRY
        assert await client.add(codec, 1) is Status.OK
        await rig.restart()
        assert (await (await rig.connect_v3()).read(5, 2)).status is Status.NO_ENTRY

    run_rig(body)


def test_without_its_metadata_a_replaced_bookie_says_nothing_about_a_ledger() -> None:
    async def body(rig: Rig) -> None:
        await rig.create_ledger(5)
        await lost_and_replaced(rig)
        client = await rig.connect_v3()
        rig.cluster.cut_off[NAME] = 1
        assert (await client.ask(ReadRequest(5, 0))).status is Status.IO_ERROR
        del rig.cluster.cut_off[NAME]
        assert (await client.ask(ReadRequest(5, 0))).status is UNKNOWN

    run_rig(body)


def test_a_replaced_bookie_that_was_never_replaced_asks_nothing() -> None:
    async def body(rig: Rig) -> None:
        await rig.create_ledger(5)
        client = await rig.connect_v3()
        await asyncio.sleep(1)
        rig.cluster.cut_off[NAME] = 1
        assert (await client.read(5, 0)).status is Status.NO_LEDGER

    run_rig(body)


def test_the_old_disk_is_refused_when_it_comes_back() -> None:
    async def body(rig: Rig) -> None:
        codec = await rig.create_ledger(5)
        assert await (await rig.connect()).add(codec, 0) is Status.OK
        rig.node.crash()
        old = dict(rig.disk.names.durable)
        lose_disks(rig)
        await session_over(rig)
        assert await replaced(rig) == 2
        rig.disk.names.live.update(old)
        rig.disk.names.durable.update(old)
        for name in ("INCARNATION",):
            for directory in (JOURNAL_DIRECTORY, LEDGER_DIRECTORY):
                rig.disk.names.live.pop(f"{directory}/current/{name}")
        with pytest.raises(WrongCluster, match="/data/journal: it is of incarnation 1 of bookie bookie-1, whose disks were replaced since"):
            await rig.node.start()

    run_rig(body)


def test_disks_can_be_lost_again() -> None:
    async def body(rig: Rig) -> None:
        await rig.create_ledger(5)
        for number in (2, 3):
            lose_disks(rig)
            await session_over(rig)
            assert await replaced(rig) == number
        await rig.node.start()
        assert (await (await rig.connect_v3()).read(5, 0)).status is UNKNOWN

    run_rig(body)


def test_a_replacement_refuses_data_a_running_bookie_and_a_stranger() -> None:
    async def body(rig: Rig) -> None:
        codec = await rig.create_ledger(5)
        assert await (await rig.connect()).add(codec, 0) is Status.OK
        host = rig.world.start_host("elsewhere")
        async with metadata_of(rig) as metadata:
            with pytest.raises(EnvironmentFault, match="bookie bookie-1 is registered, so it runs"):
                await Replacement(host.port, small_bookie_settings(NAME), metadata).check()
            with pytest.raises(ConfigError, match=r"the cluster knows no bookie bookie-9.*there are: bookie-1"):
                await Replacement(host.port, small_bookie_settings("bookie-9"), metadata).check()
        rig.node.crash()
        await session_over(rig)
        with pytest.raises(ConfigError, match=r"/data/journal: it holds data \(0000000000000001.journal\): nothing is lost here"):
            await replaced(rig)
        async with metadata_of(rig) as metadata:
            assert (await metadata.incarnations.get(NAME)).number == 1, "nothing was changed"
        await rig.node.start()

    run_rig(body)


def test_an_interrupted_replacement_is_begun_again() -> None:
    async def body(rig: Rig) -> None:
        await rig.create_ledger(5)
        lose_disks(rig)
        await session_over(rig)
        rig.disk.failing_syncs.append(LEDGER_DIRECTORY)
        with pytest.raises(OSError, match="sync failed"):
            await replaced(rig)
        with pytest.raises(WrongCluster, match="/data/ledgers: it has no VERSION file"):
            await rig.node.start()
        rig.node.crash()
        assert await replaced(rig) == 3
        await rig.node.start()
        assert (await (await rig.connect_v3()).read(5, 0)).status is UNKNOWN

    run_rig(body)


def test_a_ledger_in_the_trash_stays_unknown() -> None:
    async def body(rig: Rig) -> None:
        await rig.create_ledger(5)
        async with metadata_of(rig) as metadata:
            await metadata.tree.create(f"{metadata.own_root}/trash/{5:019d}", b"{}", parents=True)
        await rig.delete_ledger(5)
        await lost_and_replaced(rig)
        assert (await (await rig.connect_v3()).read(5, 0)).status is UNKNOWN

    run_rig(body)


def test_the_files_of_a_replaced_bookie_carry_its_incarnation() -> None:
    async def body(rig: Rig) -> None:
        await lost_and_replaced(rig)
        codec = EntryCodec(9, DigestType.CRC32C, b"")
        assert await (await rig.connect()).add(codec, 0) is Status.OK
        header = rig.disk.names.live[f"{JOURNAL_DIRECTORY}/current/0000000000000001.journal"].live.read(4096, 0)
        assert b'"incarnation":2' in header

    run_rig(body)


def test_a_ledger_that_is_loaded_while_the_visit_ends_is_in_limbo_no_more() -> None:
    async def body(rig: Rig) -> None:
        await rig.create_ledger(5)
        await lost_and_replaced(rig)
        storage = rig.bookie.storage
        run = storage.workers.reader.run

        async def run_and_end(function: Callable[..., Any], *arguments: Any) -> Any:
            found = await run(function, *arguments)
            if function == storage.stored.load:
                async with metadata_of(rig) as metadata:
                    assert await mark_visited(metadata, NAME)
                await eventually(lambda: bool(rig.facts("bookie.visited")))
            return found

        storage.workers.reader.run = run_and_end  # type: ignore[method-assign, assignment]
        client = await rig.connect()
        assert (await client.read(5, 0)).status is Status.NO_LEDGER
        assert await client.add(EntryCodec(5, DigestType.CRC32C, b""), 0) is Status.OK

    run_rig(body)


@pytest.mark.parametrize("loaded", ["in the trash", "when it is back"])
def test_a_ledger_made_since_that_was_deleted_and_comes_back_is_served_as_by_any_bookie(loaded: str) -> None:
    async def body(rig: Rig) -> None:
        await lost_and_replaced(rig)
        async with metadata_of(rig) as metadata:
            since = await metadata.ledgers.new_id()
            codec = await rig.create_ledger(since)
            client = await rig.connect_v3()
            assert await client.add(codec, 0) is Status.OK
            for _ in range(2):
                await metadata.trash.delete(since, TRASH_PERIOD_S)
                if loaded == "in the trash":
                    await rig.restart()
                    client = await rig.connect_v3()
                    assert (await client.read(since, 1)).status is Status.NO_ENTRY
                await metadata.trash.undelete(since)
                if loaded == "when it is back":
                    await rig.restart()
                    client = await rig.connect_v3()
                assert (await client.read(since, 1)).status is Status.NO_ENTRY
                assert (await client.ask(ListEntriesRequest(since))).status is Status.OK
            assert await client.add(codec, 1) is Status.OK

    run_rig(body, trash_period_s=TRASH_PERIOD_S)


def test_an_old_ledger_of_a_chosen_id_that_comes_back_does_not_look_new() -> None:
    async def body(rig: Rig) -> None:
        async with metadata_of(rig) as metadata:
            chosen = await metadata.ledgers.new_id() + 1_000_000
            codec = await rig.create_ledger(chosen)
            assert await (await rig.connect()).add(codec, 0) is Status.OK
            await lost_and_replaced(rig)
            for _ in range(2):
                await metadata.trash.delete(chosen, TRASH_PERIOD_S)
                await asyncio.sleep(1)
                await metadata.trash.undelete(chosen)
                assert (await (await rig.connect_v3()).read(chosen, 0)).status is UNKNOWN
                await rig.restart()
            # Its node, created again, is changed again, as by a recovery.
            found = await metadata.ledgers.get(chosen)
            await metadata.ledgers.update(chosen, found.value, found.version)
            assert (await (await rig.connect_v3()).read(chosen, 0)).status is UNKNOWN
            assert await (await rig.connect()).add(codec, 1) is Status.READ_ONLY

    run_rig(body, trash_period_s=TRASH_PERIOD_S)


def test_a_ledger_that_comes_back_while_it_is_asked_about_stays_unknown() -> None:
    async def body(rig: Rig) -> None:
        await rig.create_ledger(5)
        await lost_and_replaced(rig)
        async with metadata_of(rig) as metadata:
            await metadata.trash.delete(5, TRASH_PERIOD_S)
            assert rig.bookie.parts.limbo is not None
            theirs = rig.bookie.parts.limbo.metadata
            get = theirs.ledgers.get

            async def get_and_bring_back(ledger_id: int) -> Any:
                theirs.ledgers.get = get  # type: ignore[method-assign]
                try:
                    return await get(ledger_id)
                finally:
                    await metadata.trash.undelete(ledger_id)

            theirs.ledgers.get = get_and_bring_back  # type: ignore[method-assign]
            assert (await (await rig.connect_v3()).read(5, 0)).status is UNKNOWN

    run_rig(body, trash_period_s=TRASH_PERIOD_S)
