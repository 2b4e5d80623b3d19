"""A rebuild of the index that the power was cut under: as none, so that what the old index knew of entry logs is still known."""

from __future__ import annotations

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import LEDGERS, add_all, check_all
from tests.unit.bookie.rebuild_rig import rebuild, rebuilt_up_to
from triplicate.errors import CorruptionError

LOST = f"{LEDGERS}/0000000000000001.entries"
AWAY = f"{LEDGERS}/away"
MISSED = r"index\.db: the index names entry log 1, which is in none of the ledger directories"
STEPS_MAX = 200


async def filled(rig: Rig) -> None:
    """Two logs."""
    await add_all(await rig.connect(), 5, 0, 9)
    await rig.bookie.storage.flush()
    await rig.restart()
    await add_all(await rig.connect(), 6, 0, 9)
    await rig.bookie.storage.flush()
    rig.node.crash(keep_unsynced=True)


def move(rig: Rig, source: str, target: str) -> None:
    disk = rig.world.start_host("bookie-1").port.disk
    disk.rename(source, target)
    disk.sync_directory(LEDGERS)


def indexes(rig: Rig) -> list[str]:
    return [name for name in rig.files(LEDGERS) if name.startswith("index")]


@pytest.mark.parametrize("powered", [False, True])
def test_what_the_old_index_knew_is_still_known(powered: bool) -> None:
    ended = taken_back = 0
    for step in range(STEPS_MAX):

        async def body(rig: Rig, step: int = step) -> bool:
            nonlocal taken_back
            await filled(rig)
            whole = await rebuilt_up_to(rig, step)
            if not powered:
                rig.disk.crash()
            if whole:
                return True
            move(rig, LOST, AWAY)
            if step % 2:
                with pytest.raises(CorruptionError, match=MISSED):
                    await rebuild(rig)
            else:
                with pytest.raises(CorruptionError, match=MISSED):
                    await rig.node.start()
                rig.node.crash(keep_unsynced=True)
            move(rig, AWAY, LOST)
            await rig.node.start()
            taken_back += len(rig.facts("bookie.index_taken_back"))
            client = await rig.connect()
            await check_all(client, 5, 9)
            await check_all(client, 6, 9)
            assert indexes(rig) == ["index.db", "index.db-commits"]
            return False

        ended += run_rig(body, seed=step, flush_interval_s=3600.0)
        if ended > 2:
            break
    assert ended > 2, "a rebuild takes fewer steps than that"
    assert taken_back > 3, "it was interrupted while the old index stood aside"


def test_an_old_index_beside_one_that_is_complete_is_forgotten() -> None:
    """The files that a rebuild by an earlier release left, before a start made an index that was used since."""

    async def body(rig: Rig) -> None:
        await filled(rig)
        disk = rig.world.start_host("bookie-1").port.disk
        for name in ("index.db", "index.db-commits"):
            old = bytes(rig.disk.names.live[f"{LEDGERS}/{name}"].live.data)
            disk.open(f"{LEDGERS}/{name}.replaced", create=True).pwrite([old], 0)
        await rig.node.start()
        assert indexes(rig) == ["index.db", "index.db-commits"]
        assert not rig.facts("bookie.index_taken_back")
        await check_all(await rig.connect(), 6, 9)

    run_rig(body, flush_interval_s=3600.0)
