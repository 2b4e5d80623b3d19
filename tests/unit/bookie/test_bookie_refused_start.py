"""A start that is refused on account of what stands on the disks leaves them byte for byte as they were."""

from __future__ import annotations

import copy
import re
from collections.abc import Awaitable, Callable

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import LEDGERS, add_all, check_all, contents, lose_index
from tests.unit.bookie.rebuild_rig import rebuild
from triplicate.errors import CorruptionError
from triplicate.wire import Status
from triplicate_simulator.cluster.simulated_cluster import JOURNAL_DIRECTORY

FIRST_LOG = f"{LEDGERS}/0000000000000001.entries"


async def crashed(rig: Rig) -> None:
    """With entry logs, the last of them not finished, and a journal of many groups behind the mark."""
    client = await rig.connect()
    await add_all(client, 5, 0, 10)
    await rig.bookie.storage.flush()
    await add_all(client, 5, 10, 30)
    assert await client.add((await rig.create_ledger(6)), 0) is Status.OK
    rig.node.crash()


def damage_journal(rig: Rig) -> None:
    paths = sorted(path for path in rig.disk.names.live if path.startswith(JOURNAL_DIRECTORY) and path.endswith(".journal"))
    rig.disk.flip_bit(paths[-1], 4096 * 14 + 100)


def lose_log(rig: Rig) -> None:
    for names in (rig.disk.names.live, rig.disk.names.durable):
        del names[FIRST_LOG]


def cut_log(rig: Rig) -> None:
    inode = rig.disk.names.live[FIRST_LOG]
    for image in (inode.live, inode.durable):
        image.resize(image.size - 1)


async def refused(rig: Rig, match: str, start: Callable[[], Awaitable[object]]) -> None:
    before = contents(rig)
    with pytest.raises(CorruptionError, match=match) as error:
        await start()
    assert "\n" not in str(error.value)
    after = contents(rig)
    assert sorted(after) == sorted(before)
    assert [path for path in before if after[path] != before[path]] == []
    if rig.node.alive:
        rig.node.crash(keep_unsynced=True)


@pytest.mark.parametrize("without_index", [False, True])
def test_damage_within_the_journal_is_refused_before_anything_is_changed(without_index: bool) -> None:
    async def body(rig: Rig) -> None:
        await crashed(rig)
        if without_index:
            lose_index(rig)
        damage_journal(rig)
        await refused(rig, r"^/data/journal/\S+: .*(groups between them are missing|is damaged, but group)", rig.node.start)
        await refused(rig, r"^/data/journal/\S+: ", lambda: rebuild(rig))
        damage_journal(rig)
        await rig.node.start()
        await check_all(await rig.connect(), 5, 30)

    # One file, so that it is known where the groups stand.
    run_rig(body, flush_interval_s=3600.0, journal_spare_files=0)


def test_a_log_that_the_index_knows_and_nobody_finds_is_refused() -> None:
    async def body(rig: Rig) -> None:
        await crashed(rig)
        inode = rig.disk.names.live[FIRST_LOG]
        lose_log(rig)
        what = f"{LEDGERS}/index.db: the index names entry log 1, which is in none of the ledger directories: bring the file back; if it"
        await refused(rig, re.escape(what), rig.node.start)
        rig.disk.names.live[FIRST_LOG] = rig.disk.names.durable[FIRST_LOG] = inode
        await rig.node.start()
        await check_all(await rig.connect(), 5, 30)

    run_rig(body, flush_interval_s=3600.0)


def test_a_log_that_is_shorter_than_the_index_knows_is_refused() -> None:
    async def body(rig: Rig) -> None:
        await crashed(rig)
        cut_log(rig)
        await refused(rig, re.escape(f"{FIRST_LOG}: it has ") + r"\d+ bytes, and the index knows that \d+ were written", rig.node.start)

    run_rig(body, flush_interval_s=3600.0)


def test_an_index_that_a_start_rebuilds_is_not_asked_for_logs() -> None:
    """An old copy of the index, which names a log that has gone since."""

    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 10)
        index = rig.bookie.storage.stored.index
        await rig.bookie.storage.flush()
        index.set_sizes([(77, 1000)])
        old = {path: copy.deepcopy(inode) for path, inode in rig.disk.names.live.items() if path.startswith(f"{LEDGERS}/index")}
        index.delete_logs([77])
        await add_all(client, 5, 11, 30)
        await rig.bookie.storage.flush()
        rig.node.crash()
        rig.disk.names.live.update(old)
        rig.disk.names.durable.update(old)
        await rig.node.start()
        assert rig.bookie.storage.stored.rebuilt
        await check_all(await rig.connect(), 5, 30)

    run_rig(body, flush_interval_s=3600.0)
