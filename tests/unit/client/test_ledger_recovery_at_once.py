"""Recoveries over either version of the protocol, several at once, and beside a writer that closes the ledger itself."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import Client, LedgerReader, LedgerWriter
from triplicate.errors import LedgerFenced, Unauthorized
from triplicate.ledger import LedgerState
from triplicate.wire import LAST_ENTRY, AddRequest, ReadRequest, Request, Status

WIRES = pytest.mark.parametrize("wire", ["v2", "v3"])
PATIENT = replace(QUICK, add_timeout_s=10.0, read_timeout_s=10.0)


async def half_written(cluster: FakeCluster, client: Client, rng: random.Random, confirmed: int = 6, unconfirmed: int = 6) -> LedgerWriter:
    """A ledger with confirmed entries, and behind them some that only one bookie each has."""
    writer = await client.create()
    await writer.append_many([f"entry {i}".encode() for i in range(confirmed)])
    keepers = {entry_id: rng.choice("abc") for entry_id in range(confirmed, confirmed + unconfirmed)}
    for name in "abc":

        def rule(request: Request, name: str = name) -> str | None:
            return "drop" if isinstance(request, AddRequest) and keepers.get(request.entry_id, name) != name else None

        cluster[name].rules.append(rule)
    for entry_id in keepers:
        writer.append_nowait(f"entry {entry_id}".encode())
    await eventually(lambda: all(cluster.holders(writer.ledger_id, entry_id) == [keeper] for entry_id, keeper in keepers.items()))
    for name in "abc":
        cluster[name].obey()
    return writer


async def release_at_random(cluster: FakeCluster, rng: random.Random) -> None:
    """Bookies hold everything and answer it in any order, some of it late."""
    for bookie in cluster.bookies.values():
        bookie.rules.append(lambda request: "hold")
    while True:
        await asyncio.sleep(0.001)
        bookie = cluster[rng.choice(list(cluster.bookies))]
        rng.shuffle(bookie.held)
        kept = bookie.held[: len(bookie.held) // 2]
        bookie.held = bookie.held[len(bookie.held) // 2 :]
        bookie.release()
        bookie.held = kept


@WIRES
@pytest.mark.parametrize("seed", range(5))
def test_recoveries_at_once_close_at_the_same_entry(wire: str, seed: int) -> None:
    async def main() -> None:
        rng = random.Random(seed)
        other_wire = rng.choice(["v2", "v3"])
        async with (
            fake_cluster() as cluster,
            cluster.client(replace(PATIENT, wire=wire)) as client,
            cluster.client(replace(PATIENT, wire=wire)) as one,
            cluster.client(replace(PATIENT, wire=other_wire)) as two,
        ):
            writer = await half_written(cluster, client, rng)
            releasing = asyncio.ensure_future(release_at_random(cluster, rng))
            try:
                recoveries = [asyncio.ensure_future(each.recover(writer.ledger_id)) for each in (one, two, one)]
                readers: list[LedgerReader] = [await recovery for recovery in recoveries]
            finally:
                releasing.cancel()
            for bookie in cluster.bookies.values():
                bookie.obey()
            metadata = await cluster.metadata_of(writer.ledger_id)
            last = metadata.last_entry_id
            assert metadata.state == LedgerState.CLOSED
            assert {reader.last_add_confirmed for reader in readers} == {last}
            assert last >= 5, "what was acknowledged is kept"
            for reader in (readers[0], readers[1]):
                assert [entry.payload for entry in await reader.read(0, last)] == [f"entry {i}".encode() for i in range(last + 1)]
            for entry_id in range(last + 1):
                assert len(cluster.holders(writer.ledger_id, entry_id)) >= 2

    run(main())


@WIRES
def test_a_recovery_that_died_half_way_is_finished_by_the_next(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(PATIENT, wire=wire)) as client:
            writer = await half_written(cluster, client, random.Random(7))
            async with cluster.client(replace(PATIENT, wire=wire)) as first:
                for name in "ab":
                    cluster[name].when(AddRequest, "hold")
                dying = asyncio.ensure_future(first.recover(writer.ledger_id))
                await eventually(lambda: bool(cluster["a"].held or cluster["b"].held))
                dying.cancel()
            for name in "ab":
                cluster[name].held.clear()
                cluster[name].obey()
            assert (await cluster.metadata_of(writer.ledger_id)).state == LedgerState.IN_RECOVERY
            async with cluster.client(replace(PATIENT, wire=wire)) as second:
                reader = await second.recover(writer.ledger_id)
                assert reader.last_add_confirmed >= 5
            with pytest.raises(LedgerFenced):
                await writer.append(b"too late")

    run(main())


@WIRES
def test_fencing_reads_carry_the_key_and_copies_have_priority(wire: str) -> None:
    async def main() -> None:
        settings = replace(PATIENT, wire=wire)
        async with fake_cluster() as cluster, cluster.client(settings) as client, cluster.client(settings) as other:
            writer = await half_written(cluster, client, random.Random(3))
            already = {name: len(cluster[name].seen) for name in "abc"}
            await other.recover(writer.ledger_id)
            seen = [request for name in "abc" for request in cluster[name].seen[already[name] :]]
            reads = [request for request in seen if isinstance(request, ReadRequest)]
            copies = [request for request in seen if isinstance(request, AddRequest)]
            assert all(request.fence and request.master_key is not None for request in reads)
            assert {request.entry_id for request in reads} >= {LAST_ENTRY, 6}
            assert copies
            assert all(request.recovery and request.high_priority for request in copies)

    run(main())


@WIRES
@pytest.mark.parametrize("closed_at", [-1, 3, 5])
def test_the_first_close_of_a_ledger_counts_with_any_last_entry(wire: str, closed_at: int) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client(replace(PATIENT, wire=wire)) as other:
            writer = await half_written(cluster, client, random.Random(1))
            for name in "ab":
                cluster[name].when(AddRequest, "hold")
            recovering = asyncio.ensure_future(other.recover(writer.ledger_id))
            await eventually(lambda: bool(cluster["a"].held or cluster["b"].held))
            found = await cluster.metadata.ledgers.get(writer.ledger_id)
            assert found.value.state == LedgerState.IN_RECOVERY
            # As BookKeeper's writer does when it finds itself fenced: it closes the ledger at what it knows.
            await cluster.metadata.ledgers.update(writer.ledger_id, found.value.closed(closed_at, 0), found.version)
            for name in "ab":
                cluster[name].obey()
            assert (await recovering).last_add_confirmed == closed_at
            assert (await cluster.metadata_of(writer.ledger_id)).last_entry_id == closed_at

    run(main())


@WIRES
@pytest.mark.parametrize("when", ["fencing", "reading", "copying"])
def test_a_refused_key_ends_a_recovery_at_once(wire: str, when: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client(replace(PATIENT, wire=wire)) as other:
            writer = await half_written(cluster, client, random.Random(2))
            kind = AddRequest if when == "copying" else ReadRequest
            for name in "abc":

                def rule(request: Request, name: str = name) -> Status | str | None:
                    if not isinstance(request, kind) or (
                        isinstance(request, ReadRequest) and (request.entry_id < 0) != (when == "fencing")
                    ):
                        return None
                    return Status.UNAUTHORIZED if name == "a" else "hold"

                cluster[name].rules.append(rule)
            with pytest.raises(Unauthorized, match="bookie a"):
                await asyncio.wait_for(other.recover(writer.ledger_id), 3.0)
            for name in "abc":
                cluster[name].held.clear()
                cluster[name].obey()

    run(main())
