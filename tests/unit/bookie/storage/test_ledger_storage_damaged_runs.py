"""A damaged run with gaps does not keep a bookie from listing the other entries of its ledger."""

from __future__ import annotations

from tests.unit.bookie.bookie_rig import Rig, run_rig
from triplicate.wire import Status

LEDGER = 4


def test_a_list_goes_on_past_a_damaged_run_and_has_what_was_stored_again() -> None:
    async def scene(rig: Rig) -> None:
        codec = await rig.create_ledger(LEDGER)
        client, lister = await rig.connect(), await rig.connect_v3()
        for entry_id in (0, 1, 3, 4):
            assert await client.add(codec, entry_id) is Status.OK
        await rig.bookie.storage.flush()
        await client.add(codec, 7)
        await rig.bookie.storage.flush()
        assert await lister.entries(LEDGER) == [range(2), range(3, 5), range(7, 8)]
        stored = rig.bookie.storage.stored
        log, run = stored.index.runs_holding(LEDGER, 0)[0]
        path = stored.path_of(log)
        assert path is not None
        rig.disk.flip_bit(path, run.table_offset, 3)
        # A start finds what the disk has.
        await rig.restart()
        client, lister = await rig.connect(), await rig.connect_v3()
        assert (await client.read(LEDGER, 3)).status is Status.IO_ERROR
        assert await lister.entries(LEDGER) == [range(7, 8)], "entries that cannot be read"
        assert rig.facts("bookie.damaged_run_not_listed")
        for entry_id in (0, 1, 3, 4):
            assert await client.add(codec, entry_id, recovery=True) is Status.OK
        await rig.bookie.storage.flush()
        assert await lister.entries(LEDGER) == [range(2), range(3, 5), range(7, 8)]
        assert (await client.read(LEDGER, 3)).status is Status.OK

    run_rig(scene)
