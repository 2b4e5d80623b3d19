"""Bookies that fail a writer: replaced, or the end of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import LedgerWriter
from triplicate.errors import ConnectionLost, HandleClosed, LedgerClosed, LedgerFenced, NotEnoughBookies, OutcomeUnknown, Unauthorized
from triplicate.ledger import EnsembleSegment, LedgerState
from triplicate.metadata import InjectedFault
from triplicate.wire import AddRequest, Status


def member(writer: LedgerWriter, position: int) -> str:
    return writer.metadata.last_segment.ensemble[position]


async def unconfirmed(cluster: FakeCluster, writer: LedgerWriter, payloads: list[bytes]) -> list[asyncio.Future[int]]:
    """Appends that only the bookie at position 0 stores."""
    for position in (1, 2):
        cluster[member(writer, position)].when(AddRequest, "hold")
    futures = [writer.append_nowait(payload) for payload in payloads]
    entry_id = writer.last_add_pushed
    await eventually(lambda: member(writer, 0) in cluster.holders(writer.ledger_id, entry_id))
    return futures


def test_a_dead_bookie_is_replaced_and_its_replacement_gets_what_is_unconfirmed() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append_many([b"x"] * 5)
            before = writer.metadata.last_segment
            dead, spare = member(writer, 1), next(name for name in "abcd" if name not in before.ensemble)
            await cluster[dead].stop()
            assert await writer.append(b"y") == 5
            await eventually(lambda: writer.ensemble_changes == 1)
            first = writer.metadata.last_segment.first_entry_id
            assert writer.metadata.segments == (before, EnsembleSegment(first, (before.ensemble[0], spare, before.ensemble[2])))
            assert first in (5, 6), "it begins behind the last-add-confirmed"
            assert (await cluster.metadata_of(writer.ledger_id)).segments == writer.metadata.segments
            assert await writer.append(b"z") == 6
            await eventually(lambda: spare in cluster.holders(writer.ledger_id, 6))
            assert all(e >= first for e in cluster[spare].ledgers[writer.ledger_id].entries)

    run(main())


def test_a_dead_bookie_is_replaced_by_one_on_another_machine() -> None:
    async def main() -> None:
        async with fake_cluster("") as cluster, cluster.client() as client:
            for number, name in enumerate("abc"):
                await cluster.add(name, f"127.0.0.{number + 2}")
            writer = await client.create()
            for number, name in enumerate("defghi"):
                # Two further bookies on each of the three machines.
                await cluster.add(name, f"127.0.0.{number % 3 + 2}")
            before = writer.metadata.last_segment.ensemble
            await cluster["b"].stop()
            await writer.append(b"x")
            await eventually(lambda: writer.ensemble_changes == 1)
            changed = writer.metadata.last_segment.ensemble
            assert [name for name in changed if name in before] == [name for name in before if name != "b"]
            assert {cluster[name].machine for name in changed} == {"127.0.0.2", "127.0.0.3", "127.0.0.4"}

    run(main())


def test_a_failure_before_anything_is_confirmed_replaces_the_first_segment() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            futures = await unconfirmed(cluster, writer, [b"0", b"1"])
            await cluster[member(writer, 1)].stop()
            assert [await future for future in futures] == [0, 1]
            assert len(writer.metadata.segments) == 1
            assert writer.metadata.last_segment.first_entry_id == 0

    run(main())


def test_failures_of_several_bookies_are_one_or_two_changes() -> None:
    async def main() -> None:
        async with fake_cluster("abcde") as cluster, cluster.client() as client:
            writer = await client.create()
            futures = await unconfirmed(cluster, writer, [b"0", b"1", b"2"])
            gone = [member(writer, 1), member(writer, 2)]
            for name in gone:
                await cluster[name].stop()
            assert [await future for future in futures] == [0, 1, 2]
            # One of them in its place is enough for an ack quorum.
            await eventually(lambda: not set(gone) & set(writer.metadata.last_segment.ensemble))
            assert writer.ensemble_changes in (1, 2)
            assert await writer.close() == 2

    run(main())


def test_a_silent_bookie_is_replaced_after_the_time_out_and_a_slow_one_is_not() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            slow = member(writer, 0)
            cluster[slow].when(AddRequest, "hold")
            assert await writer.append(b"x") == 0
            await asyncio.sleep(QUICK.add_timeout_s / 2)
            cluster[slow].obey()
            await asyncio.sleep(QUICK.add_timeout_s)
            assert writer.ensemble_changes == 0
            cluster[slow].when(AddRequest, "drop")
            assert await writer.append(b"y") == 1
            await eventually(lambda: writer.ensemble_changes == 1)
            assert slow not in writer.metadata.last_segment.ensemble

    run(main())


def test_nothing_is_confirmed_before_the_metadata_is_written() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            gate = {"delay": 0.15}
            cluster.store.fault = lambda session, name, path: InjectedFault(delay_before_s=gate["delay"]) if name == "set" else None
            await cluster[member(writer, 0)].stop()
            future = writer.append_nowait(b"1")
            alive = [member(writer, 1), member(writer, 2)]
            await eventually(lambda: all(name in cluster.holders(writer.ledger_id, 1) for name in alive))
            await asyncio.sleep(0.05)
            if len(writer.metadata.segments) == 1 and writer.last_add_confirmed == 0:
                assert not future.done()
            assert await future == 1
            await eventually(lambda: writer.ensemble_changes == 1)

    run(main())


def test_a_change_whose_answer_was_lost_is_found_applied() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            lost = iter([InjectedFault(raise_after=ConnectionLost("lost"))])
            cluster.store.fault = lambda session, name, path: next(lost, None) if name == "set" else None
            await cluster[member(writer, 0)].stop()
            assert await writer.append(b"1") == 1
            await eventually(lambda: writer.ensemble_changes == 1)
            assert await writer.append(b"2") == 2
            assert await writer.close() == 2
            assert len((await cluster.metadata_of(writer.ledger_id)).segments) == 2

    run(main())


def test_a_change_in_an_unrelated_place_of_the_metadata_is_kept() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            found = await cluster.metadata.ledgers.get(writer.ledger_id)
            edited = replace(found.value, custom={**found.value.custom, "note": b"by somebody else"})
            await cluster.metadata.ledgers.update(writer.ledger_id, edited, found.version)
            await cluster[member(writer, 0)].stop()
            assert await writer.append(b"1") == 1
            await eventually(lambda: writer.ensemble_changes == 1)
            await writer.close()
            metadata = await cluster.metadata_of(writer.ledger_id)
            assert metadata.custom["note"] == b"by somebody else"
            assert (len(metadata.segments), metadata.state) == (2, LedgerState.CLOSED)

    run(main())


def test_a_ledger_that_is_being_recovered_is_not_changed() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            found = await cluster.metadata.ledgers.get(writer.ledger_id)
            await cluster.metadata.ledgers.update(writer.ledger_id, found.value.recovering(), found.version)
            futures = await unconfirmed(cluster, writer, [b"0"])
            await cluster[member(writer, 1)].stop()
            with pytest.raises(LedgerFenced, match="unknown outcome"):
                await futures[0]
            with pytest.raises(LedgerFenced, match="nothing of this append was sent"):
                await writer.append(b"1")
            with pytest.raises(LedgerFenced):
                await writer.close()
            assert (await cluster.metadata_of(writer.ledger_id)).segments == found.value.segments

    run(main())


def test_a_ledger_that_was_closed_elsewhere_ends_the_writer() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            found = await cluster.metadata.ledgers.get(writer.ledger_id)
            await cluster.metadata.ledgers.update(writer.ledger_id, found.value.closed(0, 1), found.version)
            futures = await unconfirmed(cluster, writer, [b"1"])
            await cluster[member(writer, 1)].stop()
            with pytest.raises(LedgerClosed):
                await futures[0]

    run(main())


def test_closing_finds_the_same_end_or_says_so() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            for last, length in ((0, 1), (-1, 0)):
                writer = await client.create()
                await writer.append(b"0")
                found = await cluster.metadata.ledgers.get(writer.ledger_id)
                await cluster.metadata.ledgers.update(writer.ledger_id, found.value.closed(last, length), found.version)
                if last == 0:
                    assert await writer.close() == 0
                else:
                    with pytest.raises(LedgerClosed, match="at entry -1 by another client"):
                        await writer.close()

    run(main())


def test_a_fenced_writer_fails_everything_and_says_that_the_outcome_is_unknown() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, window_entries=2)) as client:
            writer = await client.create()
            await writer.append(b"0")
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 0)) == 3)
            for name in "abc":
                cluster[name].ledgers[writer.ledger_id].fenced = True
            waiting = [asyncio.ensure_future(writer.append(b"x")) for _ in range(4)]
            results = [await asyncio.gather(task, return_exceptions=True) for task in waiting]
            errors = [result[0] for result in results]
            assert all(isinstance(error, LedgerFenced) for error in errors)
            assert ["unknown outcome" in str(error) for error in errors] == [True, True, False, False]
            assert ["nothing of this append was sent" in str(error) for error in errors] == [False, False, True, True]
            assert errors[0].ledger_id == writer.ledger_id  # type: ignore[union-attr]
            assert writer.ensemble_changes == 0

    run(main())


def test_a_wrong_key_ends_the_writer() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            cluster["b"].when(AddRequest, Status.UNAUTHORIZED)
            cluster["c"].when(AddRequest, "drop")
            with pytest.raises(Unauthorized):
                await writer.append(b"0")

    run(main())


def test_without_replacements_the_writer_ends_and_can_still_be_closed() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            await cluster["b"].stop()
            cluster["c"].when(AddRequest, "hold")
            with pytest.raises(NotEnoughBookies, match="unknown outcome"):
                await writer.append(b"1")
            assert await writer.close() == 0
            metadata = await cluster.metadata_of(writer.ledger_id)
            assert (metadata.state, metadata.last_entry_id, metadata.length) == (LedgerState.CLOSED, 0, 1)

    run(main())


def test_a_metadata_store_that_stays_away_ends_the_writer_with_the_reason() -> None:
    async def main() -> None:
        settings = replace(QUICK, metadata_timeout_s=0.05)
        async with fake_cluster("abcd") as cluster, cluster.client(settings) as client:
            writer = await client.create()
            futures = await unconfirmed(cluster, writer, [b"0"])
            cluster.store.fault = lambda session, name, path: InjectedFault(raise_before=ConnectionLost("the store is away"))
            await cluster[member(writer, 1)].stop()
            with pytest.raises(OutcomeUnknown, match="the store is away"):
                await futures[0]
            cluster.store.fault = None

    run(main())


def test_appends_go_on_while_the_metadata_store_is_away() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            cluster.store.fault = lambda session, name, path: InjectedFault(raise_before=ConnectionLost("the store is away"))
            assert await writer.append_many([b"x"] * 100) == range(1, 101)
            cluster.store.fault = None
            assert await writer.close() == 100

    run(main())


def test_a_bookie_that_comes_back_may_be_chosen_again() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client, await client.create() as writer:
            for _ in range(4):
                gone = member(writer, 0)
                changes = writer.ensemble_changes
                await cluster[gone].stop()
                await writer.append(b"x")
                await eventually(lambda changes=changes: writer.ensemble_changes > changes)  # type: ignore[misc]
                await cluster.restart(gone)
            assert writer.ensemble_changes >= 4

    run(main())


def test_an_abandoned_writer_leaves_the_ledger_open() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            writer.abandon()
            writer.abandon()
            with pytest.raises(HandleClosed):
                await writer.append(b"1")
            assert (await cluster.metadata_of(writer.ledger_id)).state == LedgerState.OPEN

    run(main())
