"""A refill of one of three real bookies."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace

import pytest

from tests.unit.autorecovery.recovery_rig import PROMPT, repair, write_ledger
from tests.unit.client.cluster import run
from tests.unit.client.real_cluster import RealCluster, real_cluster
from tests.waiting import eventually
from triplicate.autorecovery import LedgerChecker, PassProgress, RepairOutcome, refill_bookie
from triplicate.bookie import Bookie, Replacement
from triplicate.config import BookieSettings
from triplicate.errors import BookieError
from triplicate.ledger import EntryCodec, LedgerMetadata, LedgerState
from triplicate.runtime import TaskScope


async def with_new_disks(cluster: RealCluster, settings: BookieSettings) -> Bookie:
    """Replace the disks of bookie b by empty ones; the caller stops it."""
    await cluster.bookies["b"].stop()
    for directory in (*settings.journal_directories, *settings.ledger_directories):
        shutil.rmtree(directory)
    await Replacement(cluster.host, settings, cluster.metadata).carry_out()
    return await Bookie.start(cluster.host, settings, cluster.metadata)


@pytest.mark.parametrize("older", [False, True])
def test_a_bookie_with_empty_disks_gets_everything_back(older: bool) -> None:
    async def main() -> None:
        async with real_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 200, sizes=(3, 3, 3))
            settings = replace(cluster.bookies["b"].settings, clients_before_4_15=older)
            bookie = await with_new_disks(cluster, settings)
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


async def lives(metadata: LedgerMetadata) -> bool:
    return True


def test_the_limbo_ends_while_a_writer_that_nobody_can_replace_the_bookie_for_goes_on() -> None:
    async def main() -> None:
        async with real_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create(ensemble_size=3, write_quorum=3, ack_quorum=2)
            for _ in range(50):
                await writer.append(b"before")
            bookie = await with_new_disks(cluster, cluster.bookies["b"].settings)
            scope = TaskScope("refill")
            try:
                waiting = asyncio.Event()
                progress = PassProgress(on_change=lambda: waiting.set() if progress.waits_for else None)
                settings = replace(PROMPT, refill_wait_s=60.0)
                refill = scope.spawn(
                    refill_bookie(client, "b", settings=settings, has_living_writer=lives, progress=progress), name="refill"
                )
                await waiting.wait()
                assert "entries of the writers of 1 ledgers" in progress.waits_for
                while not refill.done():
                    await writer.append(b"meanwhile")
                    await asyncio.sleep(0.01)
                (repaired,) = refill.result().repairs
                assert (refill.result().complete, repaired.outcome) == (True, RepairOutcome.REFILLED)
                assert repaired.entries > 50
                await eventually(lambda: not bookie.parts.limbo.active)
                last = await writer.append(b"after")
                metadata = await client.metadata_of(writer.ledger_id)
                assert (metadata.state, len(metadata.segments)) == (LedgerState.OPEN, 1), "the writer was not fenced, and replaced nobody"
                codec = EntryCodec(writer.ledger_id, metadata.digest_type, metadata.password)
                async with client.bookie_copies() as copies:
                    for entry_id in range(51):
                        assert await copies.read(codec, entry_id, "b") is not None
                # The writer asks the bookie again after pauses, and sends it what follows.
                await eventually(lambda: not writer.missing_bookies, limit_s=60.0)
                last = await writer.append(b"to all")
                await writer.close()
                assert (await repair(client, writer.ledger_id, "b")).outcome is RepairOutcome.REPAIRED
                assert (await LedgerChecker(client, writer.ledger_id, 10.0, read=True).check()).is_complete
                assert (await client.metadata_of(writer.ledger_id)).last_entry_id == last
            finally:
                await scope.aclose()
                await bookie.stop()

    run(main())
