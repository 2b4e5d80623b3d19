"""Recovering ledgers from bookies under a script."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import Client, LedgerWriter
from triplicate.errors import ConnectionLost, LedgerFenced, NoSuchLedger, OutcomeUnknown, RecoveryFailed, Unauthorized
from triplicate.ledger import EntryCodec, LedgerState
from triplicate.metadata import InjectedFault
from triplicate.wire import LAST_ENTRY, AddRequest, ReadRequest, Status


async def written(cluster: FakeCluster, client: Client, entries: int = 3, **kinds: int) -> LedgerWriter:
    writer = await client.create(**kinds)  # type: ignore[arg-type]
    await writer.append_many([f"{i}".encode() for i in range(entries)])
    return writer


def test_recovery_fences_the_writer_and_keeps_what_was_acknowledged() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            writer = await written(cluster, client)
            reader = await other.recover(writer.ledger_id)
            assert (reader.is_closed, reader.last_add_confirmed, reader.length) == (True, 2, 3)
            assert [entry.payload for entry in await reader.read(0, 2)] == [b"0", b"1", b"2"]
            with pytest.raises(LedgerFenced):
                await writer.append(b"3")
            # The recovery does not wait for the last fence.
            await eventually(lambda: cluster.fenced(writer.ledger_id) == ["a", "b", "c"])

    run(main())


def test_every_read_of_a_recovery_fences() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            writer = await written(cluster, client, entries=2)
            # The fence of the first round is lost on one bookie; the read of an entry must bring it there.
            late = writer.metadata.last_segment.ensemble[0]
            cluster[late].when(ReadRequest, Status.IO_ERROR, entry_id=LAST_ENTRY)
            await other.recover(writer.ledger_id)
            assert late in cluster.fenced(writer.ledger_id)
            reads = [request for name in "abc" for request in cluster[name].seen if isinstance(request, ReadRequest)]
            assert all(request.fence and request.master_key is not None for request in reads)

    run(main())


def test_an_entry_on_one_bookie_is_copied_to_an_ack_quorum() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, add_timeout_s=10.0)) as client, cluster.client() as other:
            writer = await written(cluster, client, entries=1)
            for name in "ab":
                cluster[name].when(AddRequest, "drop", entry_id=1)
            future = writer.append_nowait(b"perhaps")
            await eventually(lambda: all(cluster[name].seen and cluster[name].seen[-1].entry_id == 1 for name in "abc"))  # type: ignore[union-attr]
            assert cluster.holders(writer.ledger_id, 1) == ["c"]
            for name in "ab":
                cluster[name].obey()
            reader = await other.recover(writer.ledger_id)
            assert reader.last_add_confirmed in (0, 1)
            if reader.last_add_confirmed == 1:
                assert len(cluster.holders(writer.ledger_id, 1)) >= 2
                assert (reader.length, (await reader.read(1, 1))[0].length) == (8, 8)
            assert not future.done()

    run(main())


def test_copies_pass_the_fence_and_keep_the_length() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(replace(QUICK, add_timeout_s=10.0)) as client, cluster.client() as other:
            writer = await client.create(write_quorum=3, ack_quorum=3)
            holder = writer.metadata.last_segment.ensemble[0]
            for name in "abc":
                if name != holder:
                    cluster[name].when(AddRequest, "drop")
            writer.append_nowait(b"zero")
            await eventually(lambda: cluster.holders(writer.ledger_id, 0) == [holder])
            # One negative answer proves absence with Qw = Qa, so the holder must be asked first: it is the first that answers the fence.
            for name in "abc":
                cluster[name].obey()
                if name != holder:
                    cluster[name].when(object, "hold")
            recovered = asyncio.ensure_future(other.recover(writer.ledger_id))
            await eventually(lambda: any(isinstance(asked, ReadRequest) and asked.entry_id == 0 for asked in cluster[holder].seen))
            for name in "abc":
                cluster[name].obey()
            reader = await recovered
            assert reader.last_add_confirmed == 0
            assert cluster.holders(writer.ledger_id, 0) == ["a", "b", "c"]
            adds = [request for name in "abc" for request in cluster[name].seen if isinstance(request, AddRequest) and request.recovery]
            assert len(adds) == 3
            assert all(request.high_priority for request in adds)
            entry = EntryCodec(writer.ledger_id, reader.metadata.digest_type, b"").decode(adds[0].body, 0)
            assert (entry.payload, entry.length) == (b"zero", 4)

    run(main())


def test_a_damaged_copy_is_not_taken_for_an_absent_entry() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            writer = await written(cluster, client, entries=3)
            while len(cluster.holders(writer.ledger_id, 2)) < 3:
                await asyncio.sleep(0.001)  # The third copy may still be on its way.
            for name in writer.metadata.last_segment.ensemble[:2]:
                cluster[name].when(ReadRequest, "damage", entry_id=2)
            reader = await other.recover(writer.ledger_id)
            assert reader.last_add_confirmed == 2

    run(main())


def test_recovery_refuses_when_an_acknowledged_entry_could_hide() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            writer = await written(cluster, client)
            await cluster["a"].stop()
            cluster["b"].when(ReadRequest, "drop")
            with pytest.raises(RecoveryFailed, match=r"a \(.*b \("):
                await other.recover(writer.ledger_id)
            assert (await cluster.metadata_of(writer.ledger_id)).state == LedgerState.IN_RECOVERY
            cluster["b"].obey()
            assert (await other.recover(writer.ledger_id)).last_add_confirmed == 2, "and succeeds once one more answers"

    run(main())


def test_a_timeout_is_never_an_absent_entry() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            writer = await written(cluster, client, entries=2)
            for name in "abc":
                cluster[name].when(ReadRequest, "drop", entry_id=1)
            with pytest.raises(RecoveryFailed, match="entry 1"):
                await other.recover(writer.ledger_id)

    run(main())


def test_two_recoveries_at_once_close_at_the_same_entry() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client, cluster.client() as one, cluster.client() as two:
            writer = await written(cluster, client, entries=20)
            readers = await asyncio.gather(one.recover(writer.ledger_id), two.recover(writer.ledger_id), one.recover(writer.ledger_id))
            assert [reader.last_add_confirmed for reader in readers] == [19, 19, 19]

    run(main())


def test_a_bookie_that_fails_during_recovery_is_replaced_with_the_close_only() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client, cluster.client() as other:
            writer = await written(cluster, client, entries=5)
            before = writer.metadata.segments
            failing = writer.metadata.last_segment.ensemble[0]
            cluster[failing].when(AddRequest, Status.IO_ERROR)
            for name in "abcd":
                if name != failing:
                    cluster[name].when(AddRequest, "hold")
            recovering = asyncio.ensure_future(other.recover(writer.ledger_id))
            await eventually(lambda: any(cluster[name].held for name in "abcd"))
            await asyncio.sleep(0.02)
            assert (await cluster.metadata_of(writer.ledger_id)).segments == before
            for name in "abcd":
                if name != failing:
                    cluster[name].obey()
            reader = await recovering
            assert reader.last_add_confirmed == 4
            assert failing not in reader.metadata.last_segment.ensemble

    run(main())


def test_a_recovery_replaces_a_bookie_by_one_on_another_machine() -> None:
    async def main() -> None:
        async with fake_cluster("") as cluster, cluster.client() as client, cluster.client() as other:
            for number, name in enumerate("abc"):
                await cluster.add(name, f"127.0.0.{number + 2}")
            writer = await written(cluster, client, entries=5)
            for number, name in enumerate("defghi"):
                await cluster.add(name, f"127.0.0.{number % 3 + 2}")
            cluster["b"].when(AddRequest, Status.IO_ERROR)
            reader = await other.recover(writer.ledger_id)
            recovered = reader.metadata.last_segment.ensemble
            assert "b" not in recovered
            assert {cluster[name].machine for name in recovered} == {"127.0.0.2", "127.0.0.3", "127.0.0.4"}

    run(main())


def test_a_recovery_that_cannot_learn_of_other_bookies_has_an_unknown_outcome() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client, cluster.client() as other:
            writer = await written(cluster, client, entries=5)
            cluster[writer.metadata.last_segment.ensemble[0]].when(AddRequest, Status.IO_ERROR)
            away = InjectedFault(raise_before=ConnectionLost("the store is away"))
            cluster.store.fault = lambda session, name, path: away if name == "children" else None
            with pytest.raises(OutcomeUnknown, match="the replacement of bookies in the recovery of ledger"):
                await other.recover(writer.ledger_id)
            cluster.store.fault = None
            assert (await other.recover(writer.ledger_id)).last_add_confirmed == 4

    run(main())


def test_a_ledger_closed_meanwhile_is_adopted() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            writer = await written(cluster, client)
            cluster["a"].when(ReadRequest, "hold")
            cluster["b"].when(ReadRequest, "hold")
            recovering = asyncio.ensure_future(other.recover(writer.ledger_id))
            await eventually(lambda: bool(cluster["a"].held and cluster["b"].held))
            found = await cluster.metadata.ledgers.get(writer.ledger_id)
            await cluster.metadata.ledgers.update(writer.ledger_id, found.value.closed(1, 2), found.version)
            cluster["a"].obey()
            cluster["b"].obey()
            assert (await recovering).last_add_confirmed == 1

    run(main())


def test_a_lost_answer_to_the_close_is_resolved_by_reading_again() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            writer = await written(cluster, client)
            faults = iter([InjectedFault(raise_after=ConnectionLost("lost")), None, InjectedFault(raise_before=ConnectionLost("lost"))])
            cluster.store.fault = lambda session, name, path: next(faults, None) if name == "set" else None
            assert (await other.recover(writer.ledger_id)).last_add_confirmed == 2

    run(main())


def test_recovering_a_closed_or_unknown_ledger_disturbs_nobody() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await written(cluster, client)
            await writer.close()
            reader = await client.recover(writer.ledger_id)
            assert reader.last_add_confirmed == 2
            assert cluster.fenced(writer.ledger_id) == []
            with pytest.raises(NoSuchLedger):
                await client.recover(4711)

    run(main())


def test_a_wrong_password_is_refused_before_anything_is_fenced() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create(password=b"right")
            await writer.append(b"x")
            with pytest.raises(Unauthorized):
                await client.recover(writer.ledger_id, password=b"wrong")
            with pytest.raises(Unauthorized):
                await client.open(writer.ledger_id)
            assert cluster.fenced(writer.ledger_id) == []

    run(main())


def test_a_cancelled_recovery_can_be_repeated() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            writer = await written(cluster, client)
            for name in "abc":
                cluster[name].when(ReadRequest, "hold")
            recovering = asyncio.ensure_future(other.recover(writer.ledger_id))
            await eventually(lambda: bool(cluster["a"].held))
            recovering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await recovering
            for name in "abc":
                cluster[name].obey()
            assert (await other.recover(writer.ledger_id)).last_add_confirmed == 2

    run(main())
