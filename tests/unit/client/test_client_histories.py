"""Random histories of writers and failing bookies: what was promised is still there after recovery."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from triplicate.client import Client
from triplicate.errors import TriplicateError
from triplicate.ledger import LedgerState

PATIENT = replace(QUICK, read_timeout_s=5.0, add_timeout_s=5.0, suspect_s=0.01)


def payload_of(entry_id: int) -> bytes:
    return f"entry {entry_id}".encode()


async def crash(cluster: FakeCluster, bookie_id: str) -> None:
    """A bookie loses its unsynced entries, and is back at once."""
    for connection in list(cluster[bookie_id].connections):
        if connection.transport is not None:
            connection.transport.abort()
    cluster[bookie_id].lose_what_is_not_synced()
    await asyncio.sleep(0)


async def check(cluster: FakeCluster, client: Client, ledger_id: int, promised: int) -> None:
    reader = await client.recover(ledger_id)
    assert (await cluster.metadata_of(ledger_id)).state == LedgerState.CLOSED
    assert reader.last_add_confirmed >= promised
    if reader.last_add_confirmed >= 0:
        entries = await reader.read(0, reader.last_add_confirmed)
        assert [entry.payload for entry in entries] == [payload_of(e) for e in range(reader.last_add_confirmed + 1)]


@pytest.mark.parametrize("seed", range(12))
def test_what_was_forced_survives_crashes(seed: int) -> None:
    async def main() -> None:
        rng = random.Random(seed)
        async with fake_cluster() as cluster, cluster.client(replace(PATIENT, wire=rng.choice(["v2", "v3"]))) as client:
            writer = await client.create(deferred_sync=True)
            forced = -1
            for _ in range(rng.randrange(5, 40)):
                action = rng.choices(["append", "force", "crash", "wait"], [6, 3, 1, 2])[0]
                try:
                    if action == "append":
                        writer.append_nowait(payload_of(writer.last_add_pushed + 1))
                    elif action == "force":
                        forced = max(forced, await writer.force())
                    elif action == "crash":
                        await asyncio.sleep(rng.choice([0, 0.01]))  # In the second case nothing is on its way any more.
                        for name in rng.sample("abc", rng.randint(1, 3)):
                            await crash(cluster, name)
                        await asyncio.sleep(rng.choice([0, 0.03]))
                    else:
                        await asyncio.sleep(rng.choice([0, 0.001, 0.005]))
                except TriplicateError:
                    break
            assert writer.last_add_confirmed == forced
            for name in "abc":
                await crash(cluster, name)
            async with cluster.client(PATIENT) as other:
                await check(cluster, other, writer.ledger_id, forced)

    run(main())


@pytest.mark.parametrize("seed", range(12))
def test_what_was_acknowledged_survives_in_whatever_order_it_was_appended(seed: int) -> None:
    async def main() -> None:
        rng = random.Random(seed)
        shape = rng.choice([(3, 3, 2), (4, 3, 2), (4, 2, 2)])
        async with fake_cluster("abcdefg") as cluster, cluster.client(replace(PATIENT, wire=rng.choice(["v2", "v3"]))) as client:
            writer = await client.create_adv(ensemble_size=shape[0], write_quorum=shape[1], ack_quorum=shape[2])
            order = list(range(60))
            for start in range(0, 60, 12):
                part = order[start : start + 18]
                rng.shuffle(part)
                order[start : start + 18] = part
            waiting: dict[int, asyncio.Future[int]] = {}
            kills = rng.sample(range(60), 2)
            for step, entry_id in enumerate(order):
                waiting[entry_id] = writer.append_nowait(entry_id, payload_of(entry_id))
                if step in kills:
                    await asyncio.sleep(0.005)
                    await cluster[rng.choice(writer.metadata.last_segment.ensemble)].stop()
                if rng.random() < 0.3:
                    await asyncio.sleep(rng.choice([0, 0.001, 0.003]))
            if rng.random() < 0.5:
                assert sorted(await asyncio.gather(*waiting.values())) == list(range(60))
            acknowledged = [e for e, future in waiting.items() if future.done() and future.exception() is None]
            assert sorted(acknowledged) == list(range(len(acknowledged))), "confirmed without gaps"
            for name, bookie in cluster.bookies.items():
                if bookie.listener is None:
                    await cluster.restart(name)
            async with cluster.client(PATIENT) as other:
                await check(cluster, other, writer.ledger_id, len(acknowledged) - 1)

    run(main())
