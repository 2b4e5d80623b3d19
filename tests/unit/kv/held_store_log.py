"""A store that leads over a log whose acknowledgements a test holds back, with clocks that a test may set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.waiting import PLAY_LIMIT_S, eventually
from triplicate.config import NodeSettings, StoreSettings
from triplicate.kv.engine.local_store import LoggedEntry
from triplicate.kv.engine.replicated_store import ReplicatedStore
from triplicate.runtime import Clock, Timer, real_host

IDENTITY = b"i" * 16
SETTINGS = StoreSettings(value_bytes=1000, watch_buffer_bytes=4096, mark_interval_s=0.0)


class HeldStoreLog:
    """A log that acknowledges when a test lets it, and keeps what was sent."""

    def __init__(self, epoch: int = 1) -> None:
        self.epoch = epoch
        self.next_offset = 0
        self.held = False
        self.noops = 0
        self.sent: list[LoggedEntry] = []
        self._waiting: list[tuple[asyncio.Future[Any], Any]] = []

    def append_entry_nowait(self, values: Sequence[bytes], *, preamble: bytes | None = None) -> asyncio.Future[range]:
        start, self.next_offset = self.next_offset, self.next_offset + len(values)
        self.sent.append(LoggedEntry(start, self.epoch, preamble, list(values)))
        return self._answer(range(start, self.next_offset))

    async def append_entry(self, values: Sequence[bytes], *, preamble: bytes | None = None) -> range:
        return await self.append_entry_nowait(values, preamble=preamble)

    async def noop(self) -> None:
        self.noops += 1
        await self._answer(None)

    def _answer(self, result: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.held:
            self._waiting.append((future, result))
        else:
            future.set_result(result)
        return future

    @property
    def waiting(self) -> int:
        """The number of appends that wait for their acknowledgement."""
        return len(self._waiting)

    def release(self, error: Exception | None = None) -> None:
        while self._waiting:
            self.release_at(0, error)

    def release_at(self, index: int, error: Exception | None = None) -> None:
        """Acknowledge, or fail, one of the appends that wait."""
        future, result = self._waiting.pop(index)
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    async def has_sent(self, count: int) -> None:
        """Return when `count` appends wait for their acknowledgement."""
        await eventually(lambda: len(self._waiting) >= count)


class SetClocks:
    """The real clock, but `elapsed` and the wall clock stand still until a test moves them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.now = 1000.0
        self.wall_ms = 1_000_000

    def elapsed(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def wall_us(self) -> int:
        return self.wall_ms * 1000

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> Timer:
        return self._clock.call_at(when, callback, *args)


def store_at(folder: Path, lease_s: float = 0.0, settings: StoreSettings = SETTINGS) -> tuple[ReplicatedStore, SetClocks]:
    """A store whose clocks a test moves."""
    host = real_host("test", seed=1)
    clock = SetClocks(host.clock)
    store = ReplicatedStore(
        replace(host, clock=clock), "s", IDENTITY, str(folder / "stores" / "s"), settings, NodeSettings(), lease_s=lease_s
    )
    return store, clock


Scene = Callable[[ReplicatedStore, HeldStoreLog, SetClocks], Coroutine[Any, Any, None]]


def play(folder: Path, scene: Scene, lease_s: float = 0.0, settings: StoreSettings = SETTINGS) -> None:
    """Run a scene with a leader of epoch 1, with a limit."""

    async def body() -> None:
        async with asyncio.timeout(PLAY_LIMIT_S):
            log = HeldStoreLog()
            store, clock = store_at(folder, lease_s, settings)
            await store.open()
            await store.follow()
            leading = asyncio.get_running_loop().create_task(store._lead(log, lambda: None), name="leading")
            await eventually(lambda: store.is_leader)
            try:
                await scene(store, log, clock)
            finally:
                leading.cancel()
                await asyncio.wait([leading])
                await store.close()

    asyncio.run(body())
