"""A rebuild of the index while an entry log is missing or cut short reports the loss as far as the old index knows."""

from __future__ import annotations

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import LEDGERS, add_all, contents
from tests.unit.bookie.rebuild_rig import filled, rebuild
from triplicate.errors import CorruptionError


async def lost_log(rig: Rig, *, of_an_old_index: bool) -> None:
    """Two logs, of which the first is away; the index is the one of its time, or knows both."""
    client = await rig.connect()
    await add_all(client, 5, 0, 9)
    await rig.bookie.storage.flush()
    await rig.restart()
    old = {name: bytes(rig.disk.names.live[f"{LEDGERS}/{name}"].live.data) for name in ("index.db", "index.db-commits")}
    await add_all(await rig.connect(), 6, 0, 9)
    await rig.bookie.storage.flush()
    rig.node.crash()
    if of_an_old_index:
        for name, data in old.items():
            inode = rig.disk.names.live[f"{LEDGERS}/{name}"]
            for image in (inode.live, inode.durable):
                image.data[:] = data
                image.size = len(data)
    rig.world.start_host("bookie-1").port.disk.delete(f"{LEDGERS}/0000000000000001.entries")


def test_a_log_that_the_old_index_knows_is_missed_and_nothing_changes() -> None:
    async def body(rig: Rig) -> None:
        await lost_log(rig, of_an_old_index=False)
        before = contents(rig)
        with pytest.raises(CorruptionError, match=r"index\.db: the index names entry log 1, which is in none of the ledger directories"):
            await rebuild(rig)
        assert contents(rig) == before
        assert (await rebuild(rig, lost_accepted=True)).missing_logs == (1,)

    run_rig(body, flush_interval_s=3600.0)


def test_a_log_that_an_index_older_than_the_journals_mark_knows_is_named() -> None:
    async def body(rig: Rig) -> None:
        await lost_log(rig, of_an_old_index=True)
        assert (await rebuild(rig)).missing_logs == (1,)
        assert (await rebuild(rig)).missing_logs == ()

    run_rig(body, flush_interval_s=3600.0)


def test_a_log_that_is_shorter_than_the_old_index_knows_is_not_taken_for_whole() -> None:
    async def body(rig: Rig) -> None:
        await filled(rig)
        (name,) = [name for name in rig.files(LEDGERS) if name.endswith(".entries")]
        file = rig.world.start_host("bookie-1").port.disk.open(f"{LEDGERS}/{name}")
        known = file.size()
        # Where its last block begins, so that nothing of what is left is broken.
        left = file.pread(known, 0).rindex(b"TPEB")
        file.truncate(left)
        file.sync()
        with pytest.raises(CorruptionError, match=rf"it has {left} bytes, and the index knows that {known} were written"):
            await rebuild(rig)

    run_rig(body, flush_interval_s=3600.0)
