"""Many connections wait for the same memory, and a full disk lasts: everybody goes on who can."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from tests.unit.bookie.bookie_rig import RawClient, Rig, run_rig
from triplicate.bookie.budgets import FrameBudget, Receiving
from triplicate.ledger import DigestType, EntryCodec
from triplicate.sim import World
from triplicate.wire import AddRequest, Status, encode_request

KIB = 1024


def codec(ledger_id: int = 5) -> EntryCodec:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"")


def add_frame(entry_id: int, size: int) -> bytes:
    return encode_request(AddRequest(5, entry_id, codec().master_key, codec().encode(entry_id, -1, 1, b"x" * size)))


def test_a_thousand_connections_that_wait_for_one_frame_all_go_on_when_it_is_there() -> None:
    async def body(rig: Rig) -> None:
        first = await rig.connect()
        large = add_frame(0, 190 * KIB)
        first.send_bytes(large[:KIB])
        await asyncio.sleep(0.1)
        waiting: list[RawClient] = []
        for number in range(1, 1001):
            client = await rig.connect()
            client.send_bytes(add_frame(number, 10)[:20])
            waiting.append(client)
        await asyncio.sleep(0.1)
        assert rig.bookie._frames.waiting > 900
        # Whoever goes on ends a frame, makes room in turn and has begun the next one.
        for number, client in enumerate(waiting, 1):
            client.send_bytes(add_frame(number, 10)[20:] + add_frame(2000 + number, 10)[:30])
        await asyncio.sleep(0.1)
        first.send_bytes(large[KIB:])
        assert (await first.answer()).status is Status.OK
        for number, client in enumerate(waiting, 1):
            assert (await client.answer()).status is Status.OK
            client.send_bytes(add_frame(2000 + number, 10)[30:])
        assert {(await client.answer()).status for client in waiting} == {Status.OK}
        frames = rig.bookie._frames
        assert (frames.waiting, frames.held_bytes, frames.reserved_bytes) == (0, 0, 0)
        assert all(each.is_read for each in rig.bookie._connections.values())

    run_rig(body, unfinished_frames_bytes=191 * KIB, write_cache_bytes=4 << 20, verify_on_write="off", connections=2000)


class Peer:
    """A connection that has all of its frame and ends it as soon as it may go on."""

    frame_held = 0
    frame_reserved = 0
    frame_since = 0.0
    is_read = True

    def __init__(self, budget: list[FrameBudget]) -> None:
        self._budget = budget
        self.held = False

    def hold_for_frames(self) -> None:
        self.held = True

    def go_on_with_frames(self) -> None:
        self.held = False
        self._budget[0].note(self, 0, 0)

    def drop(self, reason: str) -> None: ...


class Counted(dict[int, Receiving]):
    walks = 0

    def __iter__(self) -> Iterator[int]:
        self.walks += 1
        return super().__iter__()

    def values(self) -> object:  # type: ignore[override]
        self.walks += 1
        return super().values()


def test_a_thousand_that_wait_are_let_on_one_after_the_other_and_none_is_forgotten() -> None:
    world = World(1)
    try:
        made: list[FrameBudget] = []
        peers = [Peer(made) for _ in range(1001)]
        made.append(FrameBudget(world.start_host("alone").port.clock, 100, {id(peer): peer for peer in peers}))
        budget = made[0]
        budget.note(peers[0], 90, 100)
        for peer in peers[1:]:
            budget.note(peer, 1, 60)
        assert budget.waiting == 1000
        budget.note(peers[0], 0, 0)
        assert (budget.waiting, budget.held_bytes, budget.reserved_bytes) == (0, 0, 0)
        assert not any(peer.held for peer in peers)
    finally:
        world.close()


def test_connections_are_walked_once_when_the_bound_is_passed_and_all_are_held_until_there_is_room() -> None:
    world = World(1)
    try:
        made: list[FrameBudget] = []
        idle = [Peer(made) for _ in range(10)]
        first, second, late = Peer(made), Peer(made), Peer(made)
        everybody = Counted({id(peer): peer for peer in [first, second, *idle]})
        budget = FrameBudget(world.start_host("alone").port.clock, 100, everybody)
        made.append(budget)
        budget.note(first, 10, 500)
        for held in range(101, 301):
            budget.note(first, held, 500)
        assert everybody.walks == 1
        assert all(peer.held for peer in idle)
        everybody[id(late)] = late
        budget.join(late)
        assert late.held
        budget.note(first, 0, 0)
        assert not any(peer.held for peer in [first, second, late, *idle])
        budget.note(second, 10, 500)
        budget.note(second, 200, 500)
        assert everybody.walks == 2, "the bound is passed anew"
        assert all(peer.held for peer in [first, late, *idle])
    finally:
        world.close()
