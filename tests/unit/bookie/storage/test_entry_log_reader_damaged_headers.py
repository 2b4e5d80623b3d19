"""Entry logs whose file header is damaged: read where the rest identifies them, else refused."""

from __future__ import annotations

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import LOG, codec, overwrite
from tests.unit.bookie.full_disk_rig import KIB
from triplicate.errors import CorruptionError
from triplicate.wire import Status


async def killed_with_an_open_log(rig: Rig) -> None:
    client = await rig.connect()
    for entry_id in range(20):
        assert await client.add(codec(), entry_id, b"x" * KIB) is Status.OK
        if entry_id % 10 == 9:
            await rig.bookie.storage.flush()
    rig.node.crash(keep_unsynced=True)
    overwrite(rig, 100, b"damage")


def test_a_log_without_a_footer_is_read_where_all_blocks_are_whole_that_the_index_knows() -> None:
    async def body(rig: Rig) -> None:
        await killed_with_an_open_log(rig)
        for _ in range(2):
            await rig.node.start()
            client = await rig.connect()
            for entry_id in range(20):
                assert (await client.read(5, entry_id)).status is Status.OK
            rig.node.crash()
        assert {dict(fact.facts)["path"] for fact in rig.facts("bookie.entry_log_header_damaged")} == {LOG}

    run_rig(body, flush_interval_s=3600.0)


@pytest.mark.parametrize("offset", [4096, 4096 + 100])
def test_a_log_without_a_footer_is_refused_where_a_block_is_damaged_too(offset: int) -> None:
    async def body(rig: Rig) -> None:
        await killed_with_an_open_log(rig)
        overwrite(rig, offset, b"damage")
        with pytest.raises(CorruptionError, match=r"1\.entries: the file header is damaged, and the footer too, so the file cannot"):
            await rig.node.start()

    run_rig(body, flush_interval_s=3600.0)


def test_a_log_that_the_index_does_not_know_may_have_any_header() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert await client.add(codec(), 0) is Status.OK
        await rig.bookie.storage.flush()
        rig.node.crash(keep_unsynced=True)
        path = LOG.replace("1.entries", "7.entries")
        file = rig.world.start_host("bookie-1").port.disk.open(path, create=True)
        file.pwrite([b"torn"], 0)
        file.sync()
        await rig.node.start()
        assert (await (await rig.connect()).read(5, 0)).status is Status.OK
        assert path not in rig.disk.names.live

    run_rig(body, flush_interval_s=3600.0)
