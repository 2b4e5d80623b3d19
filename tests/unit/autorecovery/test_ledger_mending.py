"""One ledger is repaired on request: the result names the copies that were made, and a second check gives the verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.unit.autorecovery.recovery_rig import PROMPT, absent_copies, is_marked, ledger_that_lacks_b, lose, write_ledger
from tests.unit.client.cluster import FakeCluster, fake_cluster, run
from triplicate.autorecovery import LedgerChecker, LedgerCopies, MendedLedger, PassProgress, RepairOutcome, ledger_mending, mend_ledger
from triplicate.client import Client
from triplicate.ledger import LedgerMetadata

ENTRIES = 12


def checks(client: Client, ledger_id: int, *, read: bool = False) -> Callable[[], Awaitable[LedgerCopies]]:
    async def check() -> LedgerCopies:
        return await LedgerChecker(client, ledger_id, 0.5, read=read).check()

    return check


async def mend(client: Client, ledger_id: int, *, read: bool = False, progress: PassProgress | None = None) -> MendedLedger:
    return await mend_ledger(client, checks(client, ledger_id, read=read), settings=PROMPT, progress=progress)


async def whole_ledger(cluster: FakeCluster, client: Client) -> int:
    ledger_id = await write_ledger(client, ENTRIES)
    await cluster.settled(ledger_id, ENTRIES - 1)
    return ledger_id


def test_a_whole_ledger_is_left_alone() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await whole_ledger(cluster, client)
            mended = await mend(client, ledger_id)
            assert (mended.repair, mended.marked, mended.after.is_complete) == (None, (), True)
            assert not await is_marked(cluster, ledger_id)

    run(main())


def test_missing_copies_go_back_to_their_bookie() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await whole_ledger(cluster, client)
            for entry_id in (3, 4, 9):
                del cluster["b"].ledgers[ledger_id].entries[entry_id]
            progress = PassProgress()
            mended = await mend(client, ledger_id, progress=progress)
            assert mended.repair is not None
            assert mended.repair.outcome is RepairOutcome.REPAIRED
            assert (progress.bytes_copied, progress.ledgers_done, progress.ledgers_total) == (mended.repair.size_bytes, 1, 1)
            (made,) = mended.repair.made
            assert (made.target, made.replaced, made.first_entry_id, made.last_entry_id, made.entries) == ("b", "b", 0, ENTRIES - 1, 3)
            assert made.size_bytes == mended.repair.size_bytes > 0
            assert (mended.marked, mended.before.is_complete, mended.after.is_complete) == (("b",), False, True)
            assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == []
            assert not await is_marked(cluster, ledger_id)

    run(main())


def test_the_copies_of_a_lost_bookie_go_to_another_one() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await ledger_that_lacks_b(cluster, client, ENTRIES)
            mended = await mend(client, ledger_id)
            assert mended.repair is not None
            assert [(made.target, made.replaced, made.entries) for made in mended.repair.made] == [("d", "b", ENTRIES)]
            assert mended.after.is_complete

    run(main())


def test_a_damaged_copy_is_replaced_where_copies_are_read() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await whole_ledger(cluster, client)
            entries = cluster["c"].ledgers[ledger_id].entries
            entries[5] = entries[5][:-1] + b"?"
            assert (await mend(client, ledger_id)).repair is None
            mended = await mend(client, ledger_id, read=True)
            assert mended.repair is not None
            assert [(made.target, made.entries) for made in mended.repair.made] == [("c", 1)]
            assert mended.after.is_complete
            assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == []

    run(main())


def test_an_entry_without_a_good_copy_is_named_and_stays_marked() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await whole_ledger(cluster, client)
            for bookie_id in "abc":
                del cluster[bookie_id].ledgers[ledger_id].entries[7]
            before = await cluster.metadata_of(ledger_id)
            mended = await mend(client, ledger_id)
            assert mended.repair is not None
            assert mended.repair.outcome is RepairOutcome.FAILED
            assert f"entry 7 of ledger {ledger_id} has no intact copy: it should be on" in mended.repair.reason
            assert mended.after.without_copy == (range(7, 8),)
            assert await cluster.metadata_of(ledger_id) == before
            assert await is_marked(cluster, ledger_id)
            note = await cluster.metadata.repair_notes.get(ledger_id)
            assert note is not None
            assert "entry 7" in note.reason

    run(main())


def test_the_last_segment_of_a_writer_that_lives_is_left_to_it() -> None:
    async def main() -> None:
        async def lives(metadata: LedgerMetadata) -> bool:
            return True

        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"entry")
            await writer.append(b"entry that confirms the one before")
            await cluster.settled(writer.ledger_id, 1)
            await lose(cluster, "b")
            check = checks(client, writer.ledger_id)
            mended = await mend_ledger(client, check, settings=PROMPT, has_living_writer=lives)
            assert mended.repair is not None
            assert mended.repair.outcome is RepairOutcome.HAS_WRITER
            assert "lives and replaces it" in mended.repair.reason
            assert cluster.fenced(writer.ledger_id) == []
            assert await is_marked(cluster, writer.ledger_id)

    run(main())


def test_another_worker_that_has_locked_the_ledger_is_waited_for_and_named() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client, cluster.client() as other:
            ledger_id = await whole_ledger(cluster, client)
            del cluster["b"].ledgers[ledger_id].entries[1]
            marks = cluster.metadata.under_replication
            await marks.mark(ledger_id, ["b"])
            lock = await marks.lock(ledger_id, "another")
            assert lock is not None
            ledger_mending.LOCKED_WAIT_S, before = 0.0, ledger_mending.LOCKED_WAIT_S
            try:
                mended = await mend(other, ledger_id)
            finally:
                ledger_mending.LOCKED_WAIT_S = before
            assert mended.repair is not None
            assert mended.repair.outcome is RepairOutcome.LOCKED
            assert not mended.after.is_complete

    run(main())
