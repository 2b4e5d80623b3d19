"""Entries of real writers that are acknowledged only in several fault domains (`client.placement_min_ack_domains`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import WRITER_AWAITED, Client
from triplicate.errors import NotEnoughBookies
from triplicate.runtime import Metrics
from triplicate.wire import AddRequest

# The limit of an add is long, so that a bookie that a test holds does not fail on a slow machine.
PATIENT = replace(QUICK, add_timeout_s=60.0)
RACKS = replace(PATIENT, placement_policy="rack-aware", placement_min_ack_domains=2)
WAITING = "bookkeeper_client_adds_waiting_for_fault_domains"


@asynccontextmanager
async def racks(**bookies: str) -> AsyncIterator[FakeCluster]:
    """A cluster with these bookies, each on a machine of its own: their racks by id."""
    async with fake_cluster("") as cluster:
        for name, rack in bookies.items():
            await add(cluster, name, rack)
        yield cluster


async def add(cluster: FakeCluster, name: str, rack: str) -> None:
    await cluster.metadata.network_locations.set(name, f"/{rack}")
    await cluster.add(name, f"127.0.0.{len(cluster.bookies) + 2}")


def waiting(metrics: Metrics) -> float:
    (line,) = [line for line in metrics.expose().decode().splitlines() if line.startswith(f"{WAITING} ")]
    return float(line.split()[1])


async def stored_by(cluster: FakeCluster, ledger_id: int, entry_id: int, names: str) -> None:
    """Return when these bookies have the entry."""
    await eventually(lambda: sorted(cluster.holders(ledger_id, entry_id)) == sorted(names))


def test_an_entry_waits_for_the_other_rack() -> None:
    async def main() -> None:
        metrics = Metrics()
        async with racks(a="x", b="x", c="y") as cluster, cluster.client(RACKS, metrics) as client:
            writer = await client.create()
            cluster["c"].when(AddRequest, "hold")
            future = writer.append_nowait(b"0")
            await eventually(lambda: writer.waiting_for_domains == 1)
            assert (future.done(), writer.last_add_confirmed, waiting(metrics)) == (False, -1, 1)
            cluster["c"].rules.clear()
            cluster["c"].release()
            assert await future == 0
            assert (writer.waiting_for_domains, waiting(metrics)) == (0, 0)
            assert await writer.close() == 0

    run(main())


def test_without_the_setting_any_ack_quorum_is_enough() -> None:
    async def main() -> None:
        async with racks(a="x", b="x", c="y") as cluster, cluster.client(replace(RACKS, placement_min_ack_domains=1)) as client:
            writer = await client.create()
            cluster["c"].when(AddRequest, "hold")
            assert await writer.append(b"0") == 0

    run(main())


def test_under_the_uniform_policy_the_domains_are_machines() -> None:
    async def main() -> None:
        settings = replace(PATIENT, placement_min_ack_domains=3)
        async with racks(a="x", b="x", c="x") as cluster, cluster.client(settings) as client:
            writer = await client.create()
            cluster["a"].when(AddRequest, "hold")
            future = writer.append_nowait(b"0")
            await eventually(lambda: writer.waiting_for_domains == 1)
            cluster["a"].rules.clear()
            cluster["a"].release()
            assert await future == 0

    run(main())


def test_a_ledger_in_too_few_domains_is_refused() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster:
            async with cluster.client(replace(QUICK, placement_min_ack_domains=2)) as client:
                text = r"3 different machines for each entry, which is acknowledged in 2 machines; the 4 writable"
                with pytest.raises(NotEnoughBookies, match=text):
                    await client.create()
                (await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)).abandon()
            async with cluster.client(RACKS) as client:
                with pytest.raises(
                    NotEnoughBookies, match=r"2 racks for each entry, which is acknowledged in 2 racks; .*default-rack: a, b, c, d"
                ):
                    await client.create()

    run(main())


def test_a_bookie_that_dies_is_replaced_by_one_of_its_rack_and_the_entries_that_wait_are_acknowledged() -> None:
    async def main() -> None:
        async with racks(a="x", b="x", c="y") as cluster, cluster.client(RACKS) as client:
            writer = await client.create()
            await add(cluster, "d", "x")
            await add(cluster, "e", "y")
            client.placement._table_due = 0.0
            cluster["c"].when(AddRequest, "hold")
            future = writer.append_nowait(b"0")
            await eventually(lambda: writer.waiting_for_domains == 1)
            await cluster["c"].stop()
            assert await future == 0
            assert sorted(writer.metadata.last_segment.ensemble) == ["a", "b", "e"]
            await stored_by(cluster, writer.ledger_id, 0, "abe")

    run(main())


def test_a_writer_continues_without_a_bookie_while_the_others_span_the_domains() -> None:
    async def main() -> None:
        async with racks(a="x", b="x", c="y") as cluster, cluster.client(RACKS) as client:
            writer = await client.create()
            await cluster["a"].stop()
            assert await writer.append(b"0") == 0
            await stored_by(cluster, writer.ledger_id, 0, "bc")

    run(main())


def test_a_change_that_leaves_some_entries_in_one_rack_is_not_made() -> None:
    async def main() -> None:
        async with racks(a="x", b="x", c="y", d="y") as cluster, cluster.client(replace(RACKS, add_timeout_s=1.0)) as client:
            writer = await client.create(ensemble_size=4, write_quorum=2, ack_quorum=1)
            first, second, third, fourth = writer.metadata.last_segment.ensemble
            # The ensemble alternates between the racks. A bookie moves, so that the two before the failed one would be in one rack.
            await cluster.metadata.network_locations.set(second, f"/{'x' if first in 'ab' else 'y'}")
            await add(cluster, "e", "z")
            client.placement._table_due = 0.0
            await cluster[fourth].stop()
            with pytest.raises(NotEnoughBookies, match=f"would be in fewer: {first} in .*, {second} in .*, {third} in .*, e in"):
                await writer.append_many([b"x"] * 8)
            assert writer.ensemble_changes == 0

    run(main())


def test_a_writer_without_another_rack_ends_with_the_reason() -> None:
    async def main() -> None:
        async with racks(a="x", b="x", c="y") as cluster, cluster.client(replace(RACKS, add_timeout_s=1.0)) as client:
            writer = await client.create()
            await add(cluster, "d", "x")
            client.placement._table_due = 0.0
            assert await writer.append(b"0") == 0
            await cluster["c"].stop()
            with pytest.raises(NotEnoughBookies, match=r"2 racks for each entry, which is acknowledged in 2 racks; those outside are in"):
                await writer.append(b"1")
            assert writer.metadata.segments[0].ensemble == writer.metadata.last_segment.ensemble
            assert await writer.close() == 0

    run(main())


def test_entries_are_acknowledged_when_the_bookie_of_the_other_rack_is_back() -> None:
    async def main() -> None:
        async with racks(a="x", b="x", c="y") as cluster, cluster.client(RACKS) as client:
            writer = await client.create()
            await cluster["c"].stop()
            future = writer.append_nowait(b"0")
            await eventually(lambda: writer.waiting_for_domains == 1 and writer.missing_bookies == ("c",))
            assert not future.done()
            await cluster["c"].start(cluster.host, cluster.ports["c"])
            assert await future == 0
            await stored_by(cluster, writer.ledger_id, 0, "abc")

    run(main())


def test_chosen_ids_and_deferred_sync_wait_for_the_other_rack() -> None:
    async def main() -> None:
        async with racks(a="x", b="x", c="y") as cluster, cluster.client(RACKS) as client:
            cluster["c"].when(AddRequest, "hold")
            adv, deferred = await client.create_adv(), await client.create(deferred_sync=True)
            futures = [adv.append_nowait(0, b"0"), deferred.append_nowait(b"0")]
            await eventually(lambda: (adv.waiting_for_domains, deferred.waiting_for_domains) == (1, 1))
            assert [future.done() for future in futures] == [False, False]
            cluster["c"].rules.clear()
            cluster["c"].release()
            assert await asyncio.gather(*futures) == [0, 0]
            assert await deferred.force() == 0

    run(main())


def test_a_ledger_whose_bookies_are_in_one_rack_is_not_taken_up() -> None:
    async def main() -> None:
        async with racks(a="x", b="x", c="x") as cluster:
            async with cluster.client() as client:
                ledger = await client.create(custom=WRITER_AWAITED)
                ledger.abandon()
            async with cluster.client(RACKS) as client:
                with pytest.raises(NotEnoughBookies, match=r"cannot be written: .* at least 2 racks .* fewer: . in /default-region/x, "):
                    await client.take_up(ledger.ledger_id)
                await cluster.metadata.network_locations.set("b", "/y")
                client.placement._table_due = 0.0
                writer = await client.take_up(ledger.ledger_id)
                cluster["b"].when(AddRequest, "hold")
                future = writer.append_nowait(b"0")
                await eventually(lambda: writer.waiting_for_domains == 1)
                assert not future.done()

    run(main())


async def unacknowledged(cluster: FakeCluster, client: Client) -> int:
    """A ledger of one entry, which only one bookie of two racks has, and whose writer is gone."""
    writer = await client.create()
    for name in "bc":
        cluster[name].when(AddRequest, "drop")
    writer.append_nowait(b"0")
    await stored_by(cluster, writer.ledger_id, 0, "a")
    # An add that came after the rules are gone would be stored.
    await eventually(lambda: all(any(isinstance(request, AddRequest) for request in cluster[name].seen) for name in "bc"))
    writer.abandon()
    for name in "bc":
        cluster[name].rules.clear()
    return writer.ledger_id


def test_a_recovery_stores_copies_in_both_racks_before_it_closes() -> None:
    async def main() -> None:
        async with racks(a="x", b="x", c="y") as cluster, cluster.client(RACKS) as client:
            ledger_id = await unacknowledged(cluster, client)
            cluster["c"].when(AddRequest, "hold")
            recovery = asyncio.create_task(client.recover(ledger_id))
            await stored_by(cluster, ledger_id, 0, "ab")
            await eventually(lambda: len(cluster["c"].held) == 1)
            assert not (await cluster.metadata_of(ledger_id)).is_closed
            cluster["c"].rules.clear()
            cluster["c"].release()
            assert (await recovery).last_add_confirmed == 0
            await stored_by(cluster, ledger_id, 0, "abc")

    run(main())


def test_a_recovery_closes_the_ledger_though_a_rack_is_gone() -> None:
    async def main() -> None:
        async with racks(a="x", b="x", c="y") as cluster, cluster.client(RACKS) as client:
            ledger_id = await unacknowledged(cluster, client)
            await cluster["c"].stop()
            reader = await client.recover(ledger_id)
            assert (reader.last_add_confirmed, reader.missing_bookies) == (0, ("c",))

    run(main())
