"""The tree in memory behind several servers: reads may be of the past, and nothing worse."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from triplicate.errors import BadVersion, ConnectionLost, SessionExpired
from triplicate.metadata import CheckVersion, ReplicatedMemoryStore, ReplicatedMemoryTree, SetData
from triplicate.runtime import sleep
from triplicate.sim import World
from triplicate.sim.host import SimulatedClock
from triplicate.sim.virtual_loop import context_of

LAG_S = 5.0


class Stage:
    """A store with two sessions on servers of their own; the second server lags."""

    def __init__(self, world: World) -> None:
        self.clock = SimulatedClock(world.loop, 0.0)
        loop = world.loop

        def call_later(delay_s: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
            return loop.call_later(delay_s, callback, context=context_of(None))

        self.store = ReplicatedMemoryStore(self.clock, call_later, world.rng("metadata"))
        self.store._delay_s = lambda server: server.lag_high_s  # type: ignore[method-assign]
        self.prompt, self.slow = self.session(0), self.session(1)
        self.store.lag(1, LAG_S)

    def session(self, server: int) -> ReplicatedMemoryTree:
        tree = ReplicatedMemoryTree(self.store)
        self.store.attach(tree.session_id, server)
        return tree

    async def pass_(self, seconds: float) -> None:
        await sleep(self.clock, seconds)

    def time(self) -> float:
        return self.clock.monotonic()


def play(scene: Callable[[Stage], Awaitable[None]]) -> None:
    world = World(1)

    async def body() -> None:
        await scene(Stage(world))

    try:
        world.run(body())
    finally:
        world.close()


def test_a_session_reads_what_its_server_has_applied_and_never_goes_back() -> None:
    async def scene(stage: Stage) -> None:
        await stage.prompt.create("/a", b"0")
        await stage.pass_(LAG_S)
        for value in (b"1", b"2", b"3"):
            await stage.prompt.set("/a", value)
            await stage.pass_(1.0)
        assert (await stage.prompt.get("/a"))[0] == b"3"
        seen = []
        while stage.time() < 4 * LAG_S:
            data, stat = await stage.slow.get("/a")
            assert int(data) == stat.version
            seen.append(int(data))
            await stage.pass_(0.5)
        assert seen == sorted(seen)
        assert set(seen) == {0, 1, 2, 3}
        assert stage.store.stale_reads > 0

    play(scene)


def test_nodes_that_were_made_or_deleted_meanwhile_are_seen_as_they_were() -> None:
    async def scene(stage: Stage) -> None:
        await stage.prompt.create("/gone/child", parents=True)
        await stage.pass_(LAG_S)
        await stage.prompt.delete("/gone/child")
        await stage.prompt.create("/new", b"x")
        assert (await stage.slow.children("/gone"))[0] == ["child"]
        assert await stage.slow.exists("/new") is None
        await stage.slow.sync("/")
        assert (await stage.slow.children("/gone"))[0] == []
        assert (await stage.slow.get("/new"))[0] == b"x"

    play(scene)


def test_a_session_sees_its_own_changes_and_those_before_them() -> None:
    async def scene(stage: Stage) -> None:
        await stage.prompt.create("/a", b"0")
        began_s = stage.time()
        await stage.slow.create("/b")
        assert stage.time() == pytest.approx(began_s + LAG_S)
        assert await stage.slow.exists("/a") is not None
        assert await stage.slow.exists("/b") is not None

    play(scene)


def test_a_refused_change_brings_the_session_up_to_date() -> None:
    async def scene(stage: Stage) -> None:
        await stage.prompt.create("/a", b"0")
        await stage.pass_(LAG_S)
        await stage.prompt.set("/a", b"1")
        _, stat = await stage.slow.get("/a")
        assert stat.version == 0
        with pytest.raises(BadVersion):
            await stage.slow.multi([CheckVersion("/a", stat.version), SetData("/a", b"2")])
        assert (await stage.slow.get("/a"))[0] == b"1"

    play(scene)


def test_watches_wake_when_the_sessions_server_applies_the_change() -> None:
    async def scene(stage: Stage) -> None:
        await stage.prompt.create("/a", b"0")
        await stage.pass_(LAG_S)
        prompt, slow = stage.prompt.watch("/a"), stage.slow.watch("/a")
        began_s = stage.time()
        await stage.prompt.set("/a", b"1")
        await prompt.changed()
        assert stage.time() == pytest.approx(began_s)
        await slow.changed()
        assert stage.time() == pytest.approx(began_s + LAG_S)
        assert (await stage.slow.get("/a"))[0] == b"1"

    play(scene)


def test_ephemeral_nodes_vanish_at_a_server_that_lags_later() -> None:
    async def scene(stage: Stage) -> None:
        await stage.prompt.create("/alive", ephemeral=True)
        await stage.pass_(LAG_S)
        other = stage.session(0)
        stage.store.expire(stage.prompt.session_id)
        assert await other.exists("/alive") is None
        assert await stage.slow.exists("/alive") is not None
        await stage.pass_(LAG_S)
        assert await stage.slow.exists("/alive") is None

    play(scene)


def test_a_session_that_moves_is_not_taken_back_and_a_new_one_may_be() -> None:
    async def scene(stage: Stage) -> None:
        await stage.prompt.create("/a")
        for _ in range(20):
            stage.store.move(stage.prompt.session_id)
            assert await stage.prompt.exists("/a") is not None
        assert await stage.session(1).exists("/a") is None

    play(scene)


def test_the_order_of_changes_is_kept_when_a_later_one_would_take_less_time() -> None:
    async def scene(stage: Stage) -> None:
        await stage.prompt.create("/a")
        stage.store.lag(1, 0.0)
        await stage.prompt.create("/b")
        assert await stage.slow.exists("/b") is None
        await stage.pass_(LAG_S)
        assert await stage.slow.exists("/a") is not None
        assert await stage.slow.exists("/b") is not None

    play(scene)


def test_nothing_is_remembered_once_every_server_has_applied_it() -> None:
    async def scene(stage: Stage) -> None:
        for number in range(10):
            await stage.prompt.create(f"/n{number}")
        assert len(stage.store._changes) == 10
        stage.store.lag(1, 0.0)
        await stage.pass_(LAG_S)
        assert not stage.store._changes
        assert not stage.store._before
        await stage.prompt.create("/more")
        assert not stage.store._changes

    play(scene)


def test_silent_servers_answer_nobody_and_end_no_session_until_they_speak() -> None:
    async def scene(stage: Stage) -> None:
        stage.store.lag(1, 0.0)
        await stage.prompt.create("/alive", ephemeral=True)
        began_s = stage.time()
        stage.store.begin_silence()
        with pytest.raises(ConnectionLost):
            await stage.slow.exists("/alive")
        assert stage.time() == pytest.approx(began_s + 10.0)
        stage.store.expire(stage.prompt.session_id)
        assert stage.store.sessions == [1, 2]
        asking = asyncio.get_running_loop().create_task(stage.slow.exists("/alive"))
        await stage.pass_(1.0)
        stage.store.end_silence()
        assert await asking is None
        with pytest.raises(SessionExpired):
            await stage.prompt.exists("/alive")

    play(scene)


def test_a_change_that_was_given_up_may_be_made_when_the_servers_speak_again() -> None:
    async def scene(stage: Stage) -> None:
        stage.store.lag(1, 0.0)
        stage.store.begin_silence()
        for number in range(20):
            with pytest.raises(ConnectionLost):
                await stage.prompt.create(f"/n{number}")
        assert stage.store.dump().keys() == {"/"}
        stage.store.end_silence()
        made = len(stage.store.dump()) - 1
        assert 0 < made < 20

    play(scene)
