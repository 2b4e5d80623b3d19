"""Bookies that fail a writer which goes on without them: for want of others, or because changes of ensemble are delayed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import AdvLedgerWriter, LedgerWriter
from triplicate.errors import ConnectionLost, HandleClosed, LedgerFenced, NotEnoughBookies
from triplicate.ledger import EnsembleSegment, LedgerState
from triplicate.metadata import BookieServiceInfo, InjectedFault
from triplicate.runtime import Metrics
from triplicate.wire import AddRequest, ReadRequest, Status, v3

DELAYED = replace(QUICK, delay_ensemble_change=True)


def members(writer: LedgerWriter | AdvLedgerWriter) -> tuple[str, ...]:
    return writer.metadata.last_segment.ensemble


async def do_without(cluster: FakeCluster, writer: LedgerWriter, name: str) -> None:
    """Stop a member, and return when the writer misses it."""
    await cluster[name].stop()
    await writer.append(b"unheard")
    await eventually(lambda: name in writer.missing_bookies)


def copies(cluster: FakeCluster, name: str, ledger_id: int) -> list[int]:
    ledger = cluster[name].ledgers.get(ledger_id)
    return [] if ledger is None else sorted(ledger.entries)


def test_without_a_spare_bookie_the_writer_goes_on_and_says_so() -> None:
    async def main() -> None:
        metrics = Metrics()
        async with fake_cluster("abc") as cluster, cluster.client(QUICK, metrics) as client:
            writer = await client.create()
            await writer.append(b"0")
            await cluster["b"].stop()
            assert [await writer.append(b"x") for _ in range(5)] == [1, 2, 3, 4, 5]
            await eventually(lambda: writer.missing_bookies == ("b",))
            assert cluster.told("client.bookies_missing")[0]["missing"] == "b"
            assert b"bookkeeper_client_missing_bookies 1.0" in metrics.expose()
            assert writer.ensemble_changes == 0
            assert len(writer.metadata.segments) == 1
            assert await writer.close() == 5
            assert b"bookkeeper_client_missing_bookies 0.0" in metrics.expose()
            reader = await client.open(writer.ledger_id)
            assert len(await reader.read(0, 5)) == 6

    run(main())


def test_a_missing_bookie_that_is_back_is_sent_what_comes_and_never_what_was_confirmed_without_it() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create()
            await do_without(cluster, writer, "b")
            await writer.append_many([b"x"] * 10)
            await cluster.restart("b")
            await eventually(lambda: writer.missing_bookies == ())
            (back,) = cluster.told("client.bookie_back")
            first = writer.last_add_confirmed + 1
            assert (back["bookie"], back["first"]) == ("b", first)
            await writer.append_many([b"y"] * 10)
            await eventually(lambda: copies(cluster, "b", writer.ledger_id)[-1:] == [writer.last_add_confirmed])
            assert copies(cluster, "b", writer.ledger_id) == list(range(first, first + 10))
            assert writer.ensemble_changes == 0
            await writer.close()

    run(main())


def test_a_bookie_that_comes_back_is_sent_what_waits_for_an_ack_quorum() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create()
            await do_without(cluster, writer, "b")
            cluster["c"].when(AddRequest, "hold")
            waiting = [writer.append_nowait(b"%d" % number) for number in range(3)]
            await cluster.restart("b")
            entry_ids = [await future for future in waiting]
            assert [name for name in "abc" if entry_ids[-1] in copies(cluster, name, writer.ledger_id)] == ["a", "b"]
            cluster["c"].obey()
            await writer.close()

    run(main())


def test_a_bookie_that_joins_takes_the_place_of_a_missing_one_from_a_later_entry_on() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create()
            await do_without(cluster, writer, "b")
            await writer.append(b"x")
            before = writer.metadata.last_segment
            first = writer.last_add_confirmed + 1
            await cluster.add("d")
            await eventually(lambda: writer.ensemble_changes == 1)
            position = before.ensemble.index("b")
            ensemble = (*before.ensemble[:position], "d", *before.ensemble[position + 1 :])
            assert writer.metadata.segments == (before, EnsembleSegment(first, ensemble))
            assert writer.missing_bookies == ()
            await writer.append(b"y")
            await eventually(lambda: copies(cluster, "d", writer.ledger_id) == [first])

    run(main())


def test_ack_quorums_in_danger_end_the_writer_which_names_failed_bookies_and_reasons() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            cluster["b"].when(AddRequest, Status.IO_ERROR)
            cluster["c"].when(AddRequest, Status.IO_ERROR)
            with pytest.raises(NotEnoughBookies, match="why they failed") as caught:
                await writer.append(b"1")
            assert "unknown outcome" in str(caught.value)
            for name in "bc":
                assert f"{name}: bookie {name} answered IO_ERROR" in str(caught.value)
            assert caught.value.ledger_id == writer.ledger_id
            assert set(writer.missing_bookies) == {"b", "c"}
            assert await writer.close() == 0

    run(main())


def test_ack_quorums_in_danger_wait_a_moment_for_a_bookie() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(replace(QUICK, add_timeout_s=2.0)) as client:
            writer = await client.create()
            await writer.append(b"0")
            for name in "bc":
                await cluster[name].stop()
            future = writer.append_nowait(b"1")
            await eventually(lambda: len(writer.missing_bookies) == 2)
            assert not future.done()
            await cluster.restart("c")
            assert await future == 1
            assert writer.missing_bookies == ("b",)

    run(main())


def test_a_second_danger_waits_for_a_bookie_as_long_as_the_first() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(replace(QUICK, add_timeout_s=1.5)) as client:
            writer = await client.create()
            await cluster["b"].stop()
            for entry_id in (0, 2):
                await cluster["c"].stop()
                future = writer.append_nowait(b"x")
                await eventually(lambda: len(writer.missing_bookies) == 2)
                await cluster.restart("c")
                assert await future == entry_id
                # Longer than one danger may last, and shorter than it takes to forget one.
                await asyncio.sleep(1.6)
                assert await writer.append(b"x") == entry_id + 1

    run(main())


def test_a_bookie_that_joins_right_behind_a_look_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next look would be seconds away."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(replace(QUICK, reconnect_first_s=8.0)) as client:
            writer = await client.create()
            await writer.append(b"0")
            usual = cluster.metadata.bookies.writable

            async def look() -> dict[str, BookieServiceInfo]:
                found = await usual()
                if "d" not in cluster.bookies:
                    await cluster.add("d")
                return found

            monkeypatch.setattr(cluster.metadata.bookies, "writable", look)
            await cluster["b"].stop()
            await writer.append(b"1")
            async with asyncio.timeout(3.0):
                await eventually(lambda: writer.ensemble_changes == 1)
            assert "d" in members(writer)

    run(main())


def test_a_bookie_that_comes_back_during_the_last_look_is_taken_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look finds no other bookie, and the time of the danger is up when it is done; but the absent one has answered meanwhile."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            usual, late = cluster.metadata.bookies.writable, list[float]()

            async def look() -> dict[str, BookieServiceInfo]:
                if cluster["c"].held and not late:
                    late.append(QUICK.add_timeout_s)
                    cluster["c"].obey()
                    await asyncio.sleep(1.1 * QUICK.add_timeout_s)
                return await usual()

            monkeypatch.setattr(cluster.metadata.bookies, "writable", look)
            await cluster["b"].stop()
            cluster["c"].when(AddRequest, Status.IO_ERROR)
            cluster["c"].when(ReadRequest, "hold")
            assert await writer.append(b"1") == 1
            assert late
            assert writer.missing_bookies == ("b",)

    run(main())


def test_a_writer_whose_connections_were_all_dropped_ends_instead_of_asking_for_ever() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(replace(QUICK, add_timeout_s=10.0)) as client:
            writer = await client.create()
            await do_without(cluster, writer, "b")
            client._context.pool.close()
            async with asyncio.timeout(3.0):
                await eventually(lambda: isinstance(writer._pipeline.failure, HandleClosed))

    run(main())


def test_an_adv_writer_goes_on_without_a_spare_bookie_too() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create_adv()
            await cluster["b"].stop()
            futures = [writer.append_nowait(entry_id, b"x") for entry_id in (3, 1, 0, 2)]
            assert [await future for future in futures] == [3, 1, 0, 2]
            await eventually(lambda: writer.missing_bookies == ("b",))
            held = writer.append_nowait(5, b"x")
            await cluster.restart("b")
            await eventually(lambda: writer.missing_bookies == ())
            await eventually(lambda: copies(cluster, "b", writer.ledger_id) == [5])
            assert await writer.append(4, b"x") == 4
            assert await held == 5
            await eventually(lambda: copies(cluster, "b", writer.ledger_id) == [4, 5])

    run(main())


def test_the_writer_goes_on_while_nobody_can_say_whether_there_are_other_bookies() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(replace(QUICK, add_timeout_s=5.0)) as client:
            writer = await client.create()
            await writer.append(b"0")
            cluster.store.fault = lambda session, name, path: InjectedFault(raise_before=ConnectionLost("the store is away"))
            await cluster[members(writer)[0]].stop()
            assert await writer.append(b"1") == 1
            await eventually(lambda: len(writer.missing_bookies) == 1)
            assert await writer.append(b"2") == 2
            assert cluster.told("client.bookies_unknown")
            cluster.store.fault = None
            await eventually(lambda: writer.ensemble_changes == 1)
            assert await writer.append(b"3") == 3

    run(main())


def test_a_read_only_bookie_is_missed_until_it_is_writable_again() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            cluster["b"].when(AddRequest, Status.READ_ONLY)
            await cluster.set_readonly("b", True)
            await writer.append(b"1")
            await eventually(lambda: writer.missing_bookies == ("b",))
            sent = len(cluster["b"].seen)
            await asyncio.sleep(0.2)
            assert len(cluster["b"].seen) == sent, "a read-only bookie is not asked again and again"
            cluster["b"].obey()
            await cluster.set_readonly("b", False)
            await eventually(lambda: writer.missing_bookies == ())
            assert await writer.append(b"2") == 2
            await eventually(lambda: 2 in copies(cluster, "b", writer.ledger_id))

    run(main())


def test_a_bookie_that_hangs_holds_up_nobody_a_second_time() -> None:
    """It takes connections and bytes, and answers nothing."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(replace(QUICK, channel_window_entries=4)) as client:
            writer = await client.create()
            await writer.append(b"0")
            cluster["b"].when(object, "drop")
            while not writer.missing_bookies:
                await writer.append(b"x")
            for _ in range(40):
                await writer.append(b"y")
                await asyncio.sleep(0.02)
            adds = sum(isinstance(request, AddRequest) for request in cluster["b"].seen)
            assert adds <= 1 + 4 + writer.metadata.ensemble_size
            assert any(isinstance(request, ReadRequest) for request in cluster["b"].seen), "it is asked whether it is back"

    run(main())


def test_a_bookie_that_comes_back_to_a_recovered_ledger_ends_the_writer() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client, cluster.client() as other:
            writer = await client.create()
            await do_without(cluster, writer, "b")
            confirmed = writer.last_add_confirmed
            await cluster.restart("b")
            reader = await other.recover(writer.ledger_id)
            assert reader.last_add_confirmed == confirmed
            with pytest.raises(LedgerFenced):
                await writer.append(b"late")
            assert (await cluster.metadata_of(writer.ledger_id)).last_entry_id == confirmed

    run(main())


def test_a_closed_or_abandoned_writer_looks_no_further() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            closed, abandoned = await client.create(), await client.create()
            await cluster["b"].stop()
            for writer in (closed, abandoned):
                await writer.append(b"x")
                await eventually(lambda writer=writer: writer.missing_bookies == ("b",))  # type: ignore[misc]
            await closed.close()
            abandoned.abandon()
            await eventually(lambda: not any("change ensemble" in task.get_name() for task in asyncio.all_tasks()))
            assert (await cluster.metadata_of(closed.ledger_id)).state == LedgerState.CLOSED

    run(main())


def test_a_delayed_change_leaves_a_failed_bookie_in_its_place() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(DELAYED) as client:
            writer = await client.create()
            gone = members(writer)[0]
            await do_without(cluster, writer, gone)
            await writer.append_many([b"x"] * 50)
            await asyncio.sleep(0.1)
            assert (writer.ensemble_changes, writer.missing_bookies) == (0, (gone,))
            await cluster.restart(gone)
            await eventually(lambda: writer.missing_bookies == ())
            await writer.append(b"y")
            await eventually(lambda: writer.last_add_confirmed in copies(cluster, gone, writer.ledger_id))
            assert writer.ensemble_changes == 0
            await writer.close()

    run(main())


def test_a_delayed_change_replaces_all_failed_bookies_once_an_ack_quorum_is_in_danger() -> None:
    async def main() -> None:
        async with fake_cluster("abcde") as cluster, cluster.client(DELAYED) as client:
            writer = await client.create()
            first, second = members(writer)[:2]
            await do_without(cluster, writer, first)
            assert writer.ensemble_changes == 0
            await cluster[second].stop()
            entry_id = await writer.append(b"x")
            assert writer.ensemble_changes == 1
            assert not {first, second} & set(members(writer))
            assert len(cluster.holders(writer.ledger_id, entry_id)) >= 2
            assert set(cluster.holders(writer.ledger_id, entry_id)) <= set(members(writer))
            await writer.close()

    run(main())


def test_a_delayed_change_of_a_striped_ledger_counts_per_write_set() -> None:
    async def main() -> None:
        async with fake_cluster("abcdefgh") as cluster, cluster.client(DELAYED) as client:
            writer = await client.create(ensemble_size=6, write_quorum=3, ack_quorum=2)
            before = members(writer)
            await cluster[before[0]].stop()
            await cluster[before[3]].stop()
            await writer.append_many([b"x"] * 30)
            await eventually(lambda: len(writer.missing_bookies) == 2)
            assert writer.ensemble_changes == 0, "no three neighbours lack two"
            await cluster[before[4]].stop()
            await writer.append_many([b"x"] * 30)
            await eventually(lambda: writer.ensemble_changes >= 1)
            after = members(writer)
            assert sum(name in after for name in (before[0], before[3], before[4])) == 1, "two others were all there is"
            await writer.close()

    run(main())


def test_a_delayed_change_replaces_a_read_only_bookie_at_once() -> None:
    async def main() -> None:
        async with fake_cluster("abcde") as cluster, cluster.client(DELAYED) as client:
            writer = await client.create(ack_quorum=1)
            first, second = members(writer)[:2]
            await do_without(cluster, writer, first)
            cluster[second].when(AddRequest, Status.READ_ONLY)
            await writer.append(b"x")
            await eventually(lambda: writer.ensemble_changes == 1)
            assert not {first, second} & set(members(writer)), "all that failed are replaced with it"

    run(main())


@pytest.mark.parametrize("settings", [QUICK, DELAYED], ids=["at once", "delayed"])
def test_nothing_is_confirmed_by_bookies_that_the_metadata_does_not_name(settings: object) -> None:
    """BookKeeper's issue 1591: the metadata takes no writes while one bookie after the other fails."""

    async def main() -> None:
        assert isinstance(settings, type(QUICK))
        async with fake_cluster("abcdef") as cluster, cluster.client(settings) as client:
            writer = await client.create()
            await writer.append(b"0")
            cluster.store.fault = lambda session, name, path: InjectedFault(delay_before_s=0.5) if name == "set" else None
            named = members(writer)
            for name in named:
                await cluster[name].stop()
                future = writer.append_nowait(b"x")
                await asyncio.wait([future], timeout=0.1)
                last = writer.last_add_confirmed
                metadata = await cluster.metadata_of(writer.ledger_id)
                for entry_id in range(last + 1):
                    named_now = set(metadata.ensemble_of(entry_id))
                    assert len(named_now & set(cluster.holders(writer.ledger_id, entry_id))) >= 2, f"entry {entry_id}"
            assert await future == writer.last_add_pushed
            await writer.close()

    run(main())


def test_a_replacement_counts_only_once_the_metadata_names_it() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(replace(QUICK, add_timeout_s=5.0)) as client:
            writer = await client.create()
            await writer.append(b"0")
            gone, slow = members(writer)[:2]
            (spare,) = set("abcd") - set(members(writer))
            cluster.store.fault = lambda session, name, path: InjectedFault(delay_before_s=0.3) if name == "set" else None
            cluster[slow].when(AddRequest, "hold")
            await cluster[gone].stop()
            future = writer.append_nowait(b"1")
            await eventually(lambda: writer.missing_bookies == (gone,))
            await asyncio.sleep(0.1)
            assert not future.done(), "it takes the replacement to confirm this entry"
            assert copies(cluster, spare, writer.ledger_id) == [], "and it is sent nothing before it is named"
            assert await future == 1
            assert spare in (await cluster.metadata_of(writer.ledger_id)).last_segment.ensemble
            assert sorted(cluster.holders(writer.ledger_id, 1)) == sorted({*members(writer)} - {slow})
            cluster[slow].obey()

    run(main())


def test_late_errors_on_confirmed_entries_are_not_forgotten() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            late = members(writer)[2]
            cluster[late].when(AddRequest, "hold")
            assert await writer.append(b"0") == 0
            await eventually(lambda: len(cluster[late].held) == 1)
            connection, request, _ = cluster[late].held.pop()
            connection.answer(v3.refusal_of(request, Status.IO_ERROR), None)
            await eventually(lambda: writer.ensemble_changes == 1)
            assert late not in members(writer)
            assert writer.metadata.last_segment.first_entry_id == 1, "what is confirmed stays where it is"

    run(main())


def test_failures_during_a_change_are_handled_by_the_next() -> None:
    async def main() -> None:
        async with fake_cluster("abcdef") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            first, second, third = members(writer)
            slow = [InjectedFault(delay_before_s=0.2)]
            cluster.store.fault = lambda session, name, path: slow.pop() if name == "set" and slow else None
            await cluster[first].stop()
            future = writer.append_nowait(b"1")
            await eventually(lambda: writer.missing_bookies == (first,) and not slow)
            await cluster[second].stop()
            writer.append_nowait(b"2")
            await eventually(lambda: len(writer.missing_bookies) == 2)
            assert await future == 1
            assert await writer.append(b"3") == 3
            assert third in members(writer)
            assert not {first, second} & set(members(writer))
            assert writer.ensemble_changes == 2
            metadata = await cluster.metadata_of(writer.ledger_id)
            for entry_id in range(4):
                holders = cluster.holders(writer.ledger_id, entry_id)
                assert len(set(holders) & set(metadata.ensemble_of(entry_id))) >= 2

    run(main())
