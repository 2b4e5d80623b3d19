"""Changes of ensemble while others change the metadata, answers are lost, or bookies answer in the middle of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import LedgerWriter
from triplicate.errors import ConnectionLost, LedgerClosed, LedgerFenced, NoSuchLedger, OutcomeUnknown, TriplicateError
from triplicate.ledger import LedgerMetadata
from triplicate.metadata import InjectedFault
from triplicate.wire import AddRequest, Request, Status


def members(writer: LedgerWriter) -> tuple[str, ...]:
    return writer.metadata.last_segment.ensemble


async def change_by_others(cluster: FakeCluster, writer: LedgerWriter, change: Callable[[LedgerMetadata], LedgerMetadata]) -> None:
    found = await cluster.metadata.ledgers.get(writer.ledger_id)
    await cluster.metadata.ledgers.update(writer.ledger_id, change(found.value), found.version)


async def needing_a_replacement(cluster: FakeCluster, writer: LedgerWriter) -> asyncio.Future[int]:
    """An append that no two members of the ensemble can confirm; one of them fails."""
    first, second, _ = members(writer)
    cluster[second].when(AddRequest, "hold")
    await cluster[first].stop()
    return writer.append_nowait(b"waits")


Others = Callable[[LedgerMetadata], LedgerMetadata]
CONTESTS: dict[str, tuple[Others, type[TriplicateError]]] = {
    "recovered": (lambda metadata: metadata.recovering(), LedgerFenced),
    "closed": (lambda metadata: metadata.closed(0, 1), LedgerClosed),
    "changed by another": (lambda metadata: metadata.with_ensemble(1, ("x", "y", "z")), OutcomeUnknown),
}


@pytest.mark.parametrize(("change", "error"), list(CONTESTS.values()), ids=list(CONTESTS))
@pytest.mark.parametrize("lost", [False, True], ids=["conflict", "unknown outcome"])
def test_a_ledger_that_others_took_is_not_changed(change: Others, error: type[TriplicateError], lost: bool) -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(replace(QUICK, add_timeout_s=5.0)) as client:
            writer = await client.create()
            await writer.append(b"0")
            await change_by_others(cluster, writer, change)
            before = (await cluster.metadata_of(writer.ledger_id)).segments
            faults = iter([InjectedFault(raise_after=ConnectionLost("lost"))] if lost else [])
            cluster.store.fault = lambda session, name, path: next(faults, None) if name == "set" else None
            with pytest.raises(error):
                await (await needing_a_replacement(cluster, writer))
            assert (await cluster.metadata_of(writer.ledger_id)).segments == before
            assert writer.last_add_confirmed == 0

    run(main())


def test_a_deleted_ledger_ends_its_writer() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(replace(QUICK, add_timeout_s=5.0)) as client:
            writer = await client.create()
            await writer.append(b"0")
            await cluster.metadata.ledgers.delete(writer.ledger_id)
            with pytest.raises(NoSuchLedger):
                await (await needing_a_replacement(cluster, writer))
            assert not await cluster.metadata.ledgers.exists(writer.ledger_id)

    run(main())


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_change_with_unknown_outcome_is_made_once(when: str) -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(replace(QUICK, add_timeout_s=5.0)) as client:
            writer = await client.create()
            await writer.append(b"0")
            lost = ConnectionLost("lost")
            faults = iter([InjectedFault(raise_before=lost) if when == "before" else InjectedFault(raise_after=lost)] * 2)
            cluster.store.fault = lambda session, name, path: next(faults, None) if name == "set" else None
            assert await (await needing_a_replacement(cluster, writer)) == 1
            assert writer.ensemble_changes == 1
            metadata = await cluster.metadata_of(writer.ledger_id)
            assert metadata.segments == writer.metadata.segments
            assert len(metadata.segments) == 2

    run(main())


def test_answers_in_the_middle_of_a_change_move_nothing_that_the_new_segment_leaves_out() -> None:
    """BookKeeper's issue 4651: the last-add-confirmed moved on behind a new segment that was already on its way to the metadata."""

    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(replace(QUICK, add_timeout_s=5.0)) as client:
            writer = await client.create(ensemble_size=2, write_quorum=2, ack_quorum=1)
            assert [await writer.append(b"x") for _ in range(5)] == [0, 1, 2, 3, 4]
            old = members(writer)
            await cluster.settled(writer.ledger_id, 4, copies=2)

            def rule(request: Request) -> Status | str | None:
                if not isinstance(request, AddRequest):
                    return None
                return Status.IO_ERROR if request.entry_id == 7 else "hold"

            for name in old:
                cluster[name].rules.append(rule)
            cluster.store.fault = lambda session, name, path: InjectedFault(delay_before_s=0.2) if name == "set" else None
            futures = [writer.append_nowait(b"y") for _ in range(3)]
            await eventually(lambda: writer.missing_bookies == old)
            for name in old:
                cluster[name].release()
            await asyncio.sleep(0.05)
            assert writer.last_add_confirmed == 4, "the new segment begins at entry 5, and the old bookies' answers are not its own"
            assert [await future for future in futures] == [5, 6, 7]
            metadata = await cluster.metadata_of(writer.ledger_id)
            assert not set(old) & set(metadata.ensemble_of(5))
            for entry_id in range(8):
                assert set(metadata.ensemble_of(entry_id)) & set(cluster.holders(writer.ledger_id, entry_id)), f"entry {entry_id}"

    run(main())


def test_the_segments_of_a_burst_of_failures_name_the_bookies_with_the_entries() -> None:
    async def main() -> None:
        async with fake_cluster("abcdefgh") as cluster, cluster.client() as client:
            writer = await client.create(ensemble_size=4, write_quorum=3, ack_quorum=2)
            futures = []
            for round_ in range(6):
                futures += [writer.append_nowait(b"%d" % round_) for _ in range(20)]
                gone = members(writer)[round_ % 4]
                await cluster[gone].stop()
                await asyncio.sleep(0.005)
                futures += [writer.append_nowait(b"%d" % round_) for _ in range(20)]
                await eventually(lambda gone=gone: gone not in members(writer))  # type: ignore[misc]
                await cluster.restart(gone)
            assert [await future for future in futures] == list(range(240))
            assert await writer.close() == 239
            metadata = await cluster.metadata_of(writer.ledger_id)
            for entry_id in range(240):
                replicas = {metadata.ensemble_of(entry_id)[(entry_id + step) % 4] for step in range(3)}
                assert len(replicas & set(cluster.holders(writer.ledger_id, entry_id))) >= 2, f"entry {entry_id}"
            reader = await client.open(writer.ledger_id)
            assert len(await reader.read(0, 239)) == 240

    run(main())


def test_a_ledger_with_holes_reads_whole() -> None:
    """A bookie that was away has nothing of that time, and says so; nobody takes that for the end."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client, cluster.client() as other:
            writer = await client.create()
            for number, gone in enumerate("abcab"):
                await cluster[gone].stop()
                await writer.append_many([b"%d" % number] * 10)
                await eventually(lambda gone=gone: writer.missing_bookies == (gone,))  # type: ignore[misc]
                await writer.append_many([b"%d" % number] * 10)
                await cluster.restart(gone)
                await eventually(lambda: writer.missing_bookies == ())
            reader = await other.open(writer.ledger_id)
            payloads = [b"%d" % (number // 20) for number in range(100)]
            assert [entry.payload for entry in await reader.read(0, 89)] == payloads[:90], "the last appends carry no more than that"
            recovered = await other.recover(writer.ledger_id)
            assert recovered.last_add_confirmed == 99
            assert [entry.payload for entry in await recovered.read(0, 99)] == payloads
            assert writer.ensemble_changes == 0

    run(main())
