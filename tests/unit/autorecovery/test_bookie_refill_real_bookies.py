"""A refill of one of three real bookies."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import pytest

from tests.unit.autorecovery.recovery_rig import PROMPT, repair, write_ledger
from tests.unit.client.cluster import run
from tests.unit.client.real_cluster import RealCluster, real_cluster
from tests.waiting import eventually
from triplicate.autorecovery import LedgerChecker, PassProgress, RepairOutcome, refill_bookie
from triplicate.bookie import Bookie, Replacement
from triplicate.config import BookieSettings
from triplicate.errors import BookieError
from triplicate.ledger import EntryCodec, LedgerMetadata, LedgerState, write_set
from triplicate.log import Logs, has_living_writer
from triplicate.runtime import TaskScope


async def with_new_disks(cluster: RealCluster, settings: BookieSettings, bookie_id: str = "b") -> Bookie:
    """Replace the disks of a bookie by empty ones; the caller stops it."""
    await cluster.bookies[bookie_id].stop()
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


def test_two_bookies_that_share_no_entry_are_refilled_beside_their_writer() -> None:
    async def main() -> None:
        async with real_cluster("abcdef") as cluster, cluster.client() as client, AsyncExitStack() as stack:
            writer = await client.create(ensemble_size=6, write_quorum=3, ack_quorum=2)
            for _ in range(60):
                last = await writer.append(b"before")
            ensemble = writer.metadata.last_segment.ensemble
            replaced = [ensemble[0], ensemble[3]]
            for bookie_id in replaced:
                bookie = await with_new_disks(cluster, cluster.bookies[bookie_id].settings, bookie_id)
                stack.push_async_callback(bookie.stop)
            scope = await stack.enter_async_context(TaskScope("refill"))
            for bookie_id in replaced:
                settings = replace(PROMPT, refill_wait_s=60.0)
                refill = scope.spawn(refill_bookie(client, bookie_id, settings=settings, has_living_writer=lives), name="refill")
                while not refill.done():
                    await writer.append(b"meanwhile")
                    await asyncio.sleep(0.01)
                assert refill.result().complete, refill.result()
            metadata = await client.metadata_of(writer.ledger_id)
            assert (metadata.state, len(metadata.segments)) == (LedgerState.OPEN, 1), "the writer was not fenced, and replaced nobody"
            codec = EntryCodec(writer.ledger_id, metadata.digest_type, metadata.password)
            async with client.bookie_copies() as copies:
                for entry_id in range(last + 1):
                    for bookie_id in {*metadata.ensemble_of(entry_id)}.intersection(replaced):
                        position = ensemble.index(bookie_id)
                        if position in write_set(entry_id, 6, 3):
                            assert await copies.read(codec, entry_id, bookie_id) is not None
            await writer.close()

    run(main())


def test_two_bookies_that_may_have_confirmed_entries_alone_are_named() -> None:
    async def main() -> None:
        async with real_cluster("abc") as cluster, cluster.client() as client, AsyncExitStack() as stack:
            logs = Logs(client)
            await logs.create("events")
            writer = await logs.writer("events", owner="test")
            for number in range(20):
                await writer.append(b"%d" % number)
            for bookie_id in "bc":
                bookie = await with_new_disks(cluster, cluster.bookies[bookie_id].settings, bookie_id)
                stack.push_async_callback(bookie.stop)
            settings, living = replace(PROMPT, refill_wait_s=0.0), partial(has_living_writer, logs)
            report = await refill_bookie(client, "b", settings=settings, has_living_writer=living)
            assert not report.complete
            assert (
                "entries may have been confirmed by b, c alone, whose disks were replaced: have the writer close"
                in report.repairs[0].reason
            )
            assert report.repairs[0].reason.endswith(
                "the refill waited for answers of c, for 0 s without progress; the next refill goes on"
            )

            # The writer knows the end of its ledger, so nobody has to find it out.
            await writer.close()
            for bookie_id in "bc":
                assert (await refill_bookie(client, bookie_id, settings=PROMPT, has_living_writer=living)).complete
            async with await logs.reader("events") as reader:
                values: list[bytes | None] = []
                async for entry in reader:
                    values += entry.values
                    if len(values) >= 20:
                        break
            assert values == [b"%d" % number for number in range(20)]

    run(main())


def test_replaced_disks_are_named_for_a_ledger_without_a_writer() -> None:
    async def main() -> None:
        async with real_cluster("abc") as cluster, cluster.client() as client, AsyncExitStack() as stack:
            ledger_id = await write_ledger(client, 20, close=False)
            for bookie_id in "bc":
                bookie = await with_new_disks(cluster, cluster.bookies[bookie_id].settings, bookie_id)
                stack.push_async_callback(bookie.stop)
            report = await refill_bookie(client, "b", settings=PROMPT)
            assert not report.complete
            assert "entries may have been confirmed by b, c alone" in report.repairs[0].reason
            assert (await repair(client, ledger_id, "b")).reason.endswith(
                "entries up by `triplicate bookie format --visited` on one of them"
            )
            assert (await client.metadata_of(ledger_id)).state is LedgerState.OPEN, "nobody has guessed its end"

            assert await cluster.metadata.incarnations.mark_visited("c")
            await eventually(lambda: not bookie.parts.limbo.active)
            # On a slow machine the first refill may still take the writer for alive.
            while not (await refill_bookie(client, "b", settings=PROMPT)).complete:
                continue
            assert (await client.metadata_of(ledger_id)).last_entry_id == 19

    run(main())
