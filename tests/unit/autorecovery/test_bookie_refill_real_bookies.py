"""A refill of one of three real bookies."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from tests.unit.autorecovery.recovery_rig import PROMPT, write_ledger
from tests.unit.client.cluster import run
from tests.unit.client.real_cluster import real_cluster
from tests.waiting import eventually
from triplicate.autorecovery import LedgerChecker, refill_bookie
from triplicate.bookie import Bookie, Replacement
from triplicate.errors import BookieError
from triplicate.ledger import EntryCodec


@pytest.mark.parametrize("older", [False, True])
def test_a_bookie_with_empty_disks_gets_everything_back(older: bool) -> None:
    async def main() -> None:
        async with real_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 200, sizes=(3, 3, 3))
            settings = replace(cluster.bookies["b"].settings, clients_before_4_15=older)
            await cluster.bookies["b"].stop()
            for directory in (*settings.journal_directories, *settings.ledger_directories):
                shutil.rmtree(directory)
            await Replacement(cluster.host, settings, cluster.metadata).carry_out()
            bookie = await Bookie.start(cluster.host, settings, cluster.metadata)
            try:
                metadata = await client.metadata_of(ledger_id)
                codec = EntryCodec(ledger_id, metadata.digest_type, metadata.password)
                async with client.bookie_copies() as copies:
                    with pytest.raises(BookieError, match="IO_ERROR"):
                        await copies.read(codec, 7, "b")
                    report = await refill_bookie(client, "b", settings=PROMPT)
                    assert (report.complete, sum(repair.entries for repair in report.repairs)) == (True, 200)
                    assert await client.metadata_of(ledger_id) == metadata, "the copies are where the metadata name them"
                    await eventually(lambda: not bookie.parts.limbo.active)
                    assert await copies.read(codec, 200, "b") is None, "the bookie denies entries again"
                checked = await LedgerChecker(client, ledger_id, 10.0, read=True).check()
                assert checked.is_complete
                handle = bookie.storage.ledgers.get(ledger_id)
                assert handle is not None
                assert handle.fenced
            finally:
                await bookie.stop()

    run(main())
