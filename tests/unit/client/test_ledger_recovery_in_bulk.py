"""A recovery connects while the metadata is written, and sends all copies for a bookie at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.client.channel_rig import Asked, pool_of
from tests.unit.client.cluster import QUICK, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import Client, ledger_recovery
from triplicate.client.connection.bookie_channel import AddStream, InFlight
from triplicate.errors import BookieUnavailable
from triplicate.ledger import EntryCodec
from triplicate.wire import AddRequest, ReadRequest

ENTRIES = 40


async def left_open(client: Client, entries: int) -> int:
    """A ledger of which nothing is known to be confirmed: all was sent in one go."""
    writer = await client.create()
    await writer.append_many([b"x"] * entries)
    return writer.ledger_id


def test_bookies_are_connected_before_the_metadata_says_so_and_asked_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            ledger_id = await left_open(client, 1)
            mark = ledger_recovery._mark
            # The third bookie may be connected after the append is done.
            await eventually(lambda: len(cluster.holders(ledger_id, 0)) == 3)
            connected = {name: len(cluster[name].connections) for name in "abc"}

            async def late(*arguments: Any) -> Any:
                async with asyncio.timeout(2):
                    await eventually(lambda: all(len(cluster[name].connections) == connected[name] + 1 for name in "abc"))
                assert not any(isinstance(request, ReadRequest) for name in "abc" for request in cluster[name].seen)
                return await mark(*arguments)

            monkeypatch.setattr(ledger_recovery, "_mark", late)
            assert (await other.recover(ledger_id)).last_add_confirmed == 0
            await eventually(lambda: all(len(cluster[name].connections) == connected[name] for name in "abc"))

    run(main())


def test_a_connection_that_failed_before_anything_was_asked_is_tried_again_at_once() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, pool_of(cluster, replace(QUICK, reconnect_first_s=5.0)) as pool:
            await cluster["a"].stop()
            pool.connect(["a"])
            await eventually(lambda: bool(cluster.told("client.connect_failed")))
            await cluster.restart("a")
            asked = Asked([])
            pool.channel("a").read(1, 0, asked, None)
            await asked.wait(1)
            assert asked.answers[0][2] is None
            # Where somebody asked, there is a pause.
            await cluster["a"].stop()
            await eventually(lambda: bool(cluster.told("client.connection_lost")))
            for _ in range(2):
                pool.channel("a").read(1, 0, asked, None)
                await asked.wait(len(asked.answers) + 1)
            await cluster.restart("a")
            pool.channel("a").read(1, 0, asked, None)
            pool.connect(["a"])
            await asked.wait(4)
            assert isinstance(asked.answers[3][2], BookieUnavailable)

    run(main())


def test_all_copies_go_out_at_once_and_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sendings: list[tuple[str, int]] = []
    encoded: list[int] = []
    send, encode = AddStream.send, EntryCodec.encode

    def noted(lane: AddStream, frames: bytes, flight: InFlight) -> bool:
        sendings.append((lane.bookie_id, flight[1]))
        return send(lane, frames, flight)

    def counted(codec: EntryCodec, entry_id: int, *rest: Any) -> bytes:
        encoded.append(entry_id)
        return encode(codec, entry_id, *rest)

    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            ledger_id = await left_open(client, ENTRIES)
            # All that is read is answered in one go, the first entry last.
            for name in "abc":
                cluster[name].when(ReadRequest, "hold", fence=True, entry_id=0)
            monkeypatch.setattr(AddStream, "send", noted)
            monkeypatch.setattr(EntryCodec, "encode", counted)
            recovering = asyncio.ensure_future(other.recover(ledger_id))

            def has_asked_all() -> bool:
                seen = [request.entry_id for name in "abc" for request in cluster[name].seen if isinstance(request, ReadRequest)]
                return ENTRIES in seen and any(cluster[name].held for name in "abc")

            await eventually(has_asked_all)
            await asyncio.sleep(0.05)
            for name in "abc":
                cluster[name].obey()
            reader = await recovering
            assert (reader.last_add_confirmed, reader.length) == (ENTRIES - 1, ENTRIES)
            copies = [request for name in "abc" for request in cluster[name].seen if isinstance(request, AddRequest) and request.recovery]
            assert len(copies) == 3 * ENTRIES

    run(main())
    assert sorted(sendings) == [(name, ENTRIES) for name in "abc"]
    assert encoded == list(range(ENTRIES))
