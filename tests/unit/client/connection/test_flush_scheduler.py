"""Many ledgers of one client: one sending per connection and turn of the loop, and no ledger holds up another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.client.cluster import QUICK, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import LedgerWriter
from triplicate.client.connection.bookie_channel import AddStream, BookieChannel
from triplicate.client.connection.flush_scheduler import FlushScheduler, Multicast
from triplicate.client.write.add_pipeline import AddPipeline
from triplicate.errors import LedgerFenced
from triplicate.runtime import real_host
from triplicate.wire import AddRequest, Status, encode_add_responses

LEDGERS = 20


class Noting:
    """A sender or a connection that notes when it was asked."""

    def __init__(
        self, name: str, notes: list[str], scheduler: FlushScheduler, hands_to: list[Noting], error: Exception | None = None
    ) -> None:
        self.name = name
        self.notes = notes
        self.scheduler = scheduler
        self.hands_to = hands_to
        self.error = error

    def send_enqueued(self, now: float) -> None:
        self.notes.append(f"{self.name} asked")
        if self.error is not None:
            raise self.error
        for connection in self.hands_to:
            self.scheduler.schedule_flush(connection)

    def flush(self) -> None:
        self.notes.append(f"{self.name} writes")


def test_all_senders_are_asked_before_any_connection_writes() -> None:
    async def main() -> None:
        notes: list[str] = []
        scheduler = FlushScheduler(real_host("test").clock)
        wire = Noting("wire", notes, scheduler, [])
        early, late = Noting("early", notes, scheduler, [wire]), Noting("late", notes, scheduler, [])
        scheduler.schedule(early)
        scheduler.schedule(late)
        assert notes == [], "not before the end of the turn"
        await asyncio.sleep(0)
        assert notes == ["early asked", "late asked", "wire writes"]
        scheduler.schedule_flush(wire)
        await asyncio.sleep(0)
        assert notes[3:] == ["wire writes"]

    run(main())


def test_a_sender_that_fails_holds_up_nobody_else() -> None:
    async def main() -> None:
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        notes: list[str] = []
        scheduler = FlushScheduler(real_host("test").clock)
        wire = Noting("wire", notes, scheduler, [])
        scheduler.schedule(Noting("first", notes, scheduler, [wire]))
        scheduler.schedule(Noting("broken", notes, scheduler, [], ValueError("a fault")))
        scheduler.schedule(Noting("last", notes, scheduler, [wire]))
        await eventually(lambda: "wire writes" in notes)
        assert notes[:3] == ["first asked", "broken asked", "last asked"]
        assert [str(context["exception"]) for context in told] == ["a fault"]

    run(main())


def test_the_same_parts_are_joined_once() -> None:
    async def main() -> None:
        scheduler = FlushScheduler(real_host("test").clock)
        parts = [b"a", b"b"]
        joined = scheduler.join(parts)
        assert joined == b"ab"
        assert scheduler.join(list(parts)) is joined
        assert scheduler.join([b"a", b"c"]) == b"ac"

    run(main())


class Taking:
    """A channel that notes what it takes, and a ledger's lanes that note when they hear that it is full."""

    def __init__(self, name: str, notes: list[str], scheduler: FlushScheduler, room: int = 99) -> None:
        self.name = name
        self.notes = notes
        self.scheduler = scheduler
        self.room = room
        self.frames: list[bytes] = []

    def write_adds(self, parts: Sequence[bytes], adds: int, size_bytes: int) -> bool:
        assert size_bytes == sum(map(len, parts))
        self.room -= adds
        self.frames += parts
        self.scheduler.schedule_flush(self)
        return self.room > 0

    def flush(self) -> None:
        self.notes.append(f"{self.name} writes {b''.join(self.frames)!r}")

    def pause_adds(self, channel: object) -> None:
        assert isinstance(channel, Taking)
        self.notes.append(f"{channel.name} is full for {self.name}")


class Sending:
    """A ledger that sends one frame of two adds by a route."""

    def __init__(self, lanes: Taking, route: Multicast, frames: bytes) -> None:
        self.lanes = lanes
        self.route = route
        self.frames = frames

    def send_enqueued(self, now: float) -> None:
        self.route.send(self.lanes, self.frames, 2, len(self.frames))


def test_ledgers_with_the_same_bookies_share_a_route_and_all_hear_of_a_full_channel() -> None:
    async def main() -> None:
        notes: list[str] = []
        scheduler = FlushScheduler(real_host("test").clock)
        wide, narrow = Taking("wide", notes, scheduler), Taking("narrow", notes, scheduler, room=3)
        first, second = Taking("first", notes, scheduler), Taking("second", notes, scheduler)
        route = scheduler.multicast((wide, narrow))
        assert scheduler.multicast((wide, narrow)) is route is not scheduler.multicast((wide,))
        scheduler.schedule(Sending(first, route, b"1"))
        scheduler.schedule(Sending(second, scheduler.multicast((wide, narrow)), b"2"))
        await asyncio.sleep(0)
        assert notes == ["narrow is full for first", "narrow is full for second", "wide writes b'12'", "narrow writes b'12'"]
        assert (wide.room, narrow.room) == (95, -1)
        assert not scheduler.multicasts

    run(main())


def test_what_was_sent_before_a_sender_failed_goes_out_all_the_same() -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: None)
        notes: list[str] = []
        scheduler = FlushScheduler(real_host("test").clock)
        wire = Taking("wire", notes, scheduler)
        scheduler.schedule(Sending(wire, scheduler.multicast((wire,)), b"1"))
        scheduler.schedule(Noting("broken", notes, scheduler, [], ValueError("a fault")))
        await eventually(lambda: len(notes) == 2)
        assert notes == ["broken asked", "wire writes b'1'"]

    run(main())


async def many(client: Any, count: int = LEDGERS) -> list[LedgerWriter]:
    writers = [await client.create() for _ in range(count)]
    for writer in writers:
        await writer.append(b"first")
    return writers


def test_adds_of_many_ledgers_travel_in_one_write_per_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writers = await many(client)
            await eventually(lambda: all(len(cluster[name].ledgers) == LEDGERS for name in "abc"))
            for name in "abc":
                cluster[name].when(AddRequest, "hold")
            writes: list[int] = []
            for channel in client._context.pool._channels.values():
                transport = channel._transport
                assert transport is not None
                monkeypatch.setattr(channel, "_transport", Counting(transport, writes))
            futures = [writer.append_nowait(b"second") for writer in writers for _ in range(2)]
            await eventually(lambda: all(len(cluster[name].held) == 2 * LEDGERS for name in "abc"))
            assert len(writes) == 3
            for name in "abc":
                cluster[name].obey()
            assert await asyncio.gather(*futures) == [1, 2] * LEDGERS

    run(main())


class Counting:
    """A transport that counts its writes."""

    def __init__(self, transport: asyncio.Transport, writes: list[int]) -> None:
        self._transport = transport
        self._writes = writes

    def write(self, data: bytes) -> None:
        self._writes.append(len(data))
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def test_each_ledger_hears_of_its_answers_once_per_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[int, list[int]]] = []
    acknowledged = AddPipeline.adds_acknowledged

    def noted(adds: AddPipeline, lane: AddStream, entry_ids: Any) -> None:
        heard.append((adds.ledger_id, list(entry_ids)))
        acknowledged(adds, lane, entry_ids)

    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writers = await many(client, 3)
            ledgers = [writer.ledger_id for writer in writers]
            for name in "abc":
                cluster[name].when(AddRequest, "drop")
            futures = [writer.append_nowait(b"x") for _ in range(3) for writer in writers]
            await eventually(lambda: all(len(cluster[name].seen) == 4 * 3 for name in "abc"))
            monkeypatch.setattr(AddPipeline, "adds_acknowledged", noted)
            chunk = b"".join(encode_add_responses(ledger_id, [entry_id]) for entry_id in (1, 2, 3) for ledger_id in ledgers)
            for bookie_id in "ab":
                channel_of(client, bookie_id).data_received(chunk)
            assert heard == 2 * [(ledger_id, [1, 2, 3]) for ledger_id in ledgers]
            assert await asyncio.gather(*futures) == [1, 1, 1, 2, 2, 2, 3, 3, 3]

    run(main())


def channel_of(client: Any, bookie_id: str) -> BookieChannel:
    channel = client._context.pool.channel(bookie_id)
    assert isinstance(channel, BookieChannel)
    return channel


def test_what_was_stored_before_a_refusal_counts() -> None:
    """Both answers come in one chunk, and the refusal ends the writer."""

    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(QUICK) as client:
            (writer,) = await many(client, 1)
            for name in "abc":
                cluster[name].when(AddRequest, "drop")
            kept, lost = writer.append_nowait(b"kept"), writer.append_nowait(b"lost")
            await eventually(lambda: all(len(cluster[name].seen) == 3 for name in "abc"))
            stored = encode_add_responses(writer.ledger_id, [1])
            channel_of(client, "a").data_received(stored)
            channel_of(client, "b").data_received(stored + encode_add_responses(writer.ledger_id, [2], Status.FENCED))
            assert await kept == 1
            with pytest.raises(LedgerFenced):
                await lost

    run(main())


def test_a_client_forgets_finished_writers() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            for _ in range(60):
                writer = await client.create()
                await writer.close()
            assert len(client._writers) < 40
            writers = [await client.create() for _ in range(30)]
            assert all(id(writer) in client._writers for writer in writers)

    run(main())
