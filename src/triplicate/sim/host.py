"""A simulated world and the hosts in it: `runtime.ports.Host` in virtual time, with everything drawn from one seed.

Every random stream is derived from (seed, node, purpose) with a hash that is the same in all processes. A draw added in one place therefore
shifts no other.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import hashlib
import math
import random
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from triplicate.runtime import Host, Timer, fail, resolve, resolve_all
from triplicate.sim.barriers import FaultPoints
from triplicate.sim.disk import DiskTiming, SimulatedDisk
from triplicate.sim.network import SimulatedNetwork
from triplicate.sim.recorder import Recorder
from triplicate.sim.sqlite_connections import SqliteConnections
from triplicate.sim.transport import NetworkTiming
from triplicate.sim.virtual_loop import LIFE, Life, VirtualLoop, context_of
from triplicate.sim.watchdog import bounded_callbacks

Result = TypeVar("Result")

EPOCH_US = 1_750_000_000_000_000
"""The wall clock at virtual time 0, in microseconds since the epoch. The day is arbitrary."""

WALL_SKEW_MAX_S = 2.0
"""Largest error of a node's wall clock at virtual time 0, either way."""

WALL_DRIFT_MAX = 0.0002
"""Largest error of a wall clock's rate, either way: 0.2 milliseconds in a second."""


def derive_seed(*parts: object) -> int:
    """Derive a 64-bit seed from a seed, a node and a purpose. The same in every process, independently of its hash seed."""
    digest = hashlib.blake2b("/".join(str(part) for part in parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class World:
    """One simulated world: a loop, a network, disks, and a record of everything that happens.

    Args:
        seed: decides every random draw.
        network, disk: delays.
        callbacks_max, time_max_s: bounds after which the world is declared stuck.
    """

    def __init__(
        self,
        seed: int,
        *,
        network: NetworkTiming | None = None,
        disk: DiskTiming | None = None,
        callbacks_max: int = 5_000_000,
        time_max_s: float = 100_000.0,
    ) -> None:
        self.seed = seed
        self.loop = VirtualLoop(callbacks_max=callbacks_max, time_max_s=time_max_s)
        self.recorder = Recorder(self.loop.time)
        self.network = SimulatedNetwork(self.loop, lambda purpose: self.rng("network", purpose), self.recorder, timing=network)
        self.disks: dict[str, SimulatedDisk] = {}
        self.hosts: list[SimulatedHost] = []
        self.points = FaultPoints(self.recorder)
        self.points.install()
        self._disk_timing = disk
        self._databases = SqliteConnections()
        self._clocks: dict[str, SimulatedClock] = {}
        self._lives: dict[str, int] = {}

    def rng(self, *purpose: object) -> random.Random:
        """Return a random stream that nothing else draws from."""
        return random.Random(derive_seed(self.seed, *purpose))

    def disk(self, name: str) -> SimulatedDisk:
        """Return the disk of a node. It is made on first use and survives crashes."""
        disk = self.disks.get(name)
        if disk is None:
            disk = self.disks[name] = SimulatedDisk(name, self.rng(name, "disk"), self.recorder, timing=self._disk_timing)
        return disk

    def clock(self, name: str) -> SimulatedClock:
        """Return the clock of a node. Its error belongs to the machine and survives crashes."""
        clock = self._clocks.get(name)
        if clock is None:
            rng = self.rng(name, "clock skew")
            skew_s, drift = rng.uniform(-WALL_SKEW_MAX_S, WALL_SKEW_MAX_S), rng.uniform(-WALL_DRIFT_MAX, WALL_DRIFT_MAX)
            clock = self._clocks[name] = SimulatedClock(self.loop, skew_s, drift)
        return clock

    def start_host(self, name: str) -> SimulatedHost:
        """Switch a node on: a new life, with the disk that its former lives left."""
        number = self._lives[name] = self._lives.get(name, 0) + 1
        life = Life(name, number, self.clock(name).loop_time)
        self.network.host_up(name)
        host = SimulatedHost(self, life)
        self.hosts.append(host)
        self.recorder.fact(name, "host.start", {"life": number})
        return host

    def run(self, main: Coroutine[Any, Any, Result]) -> Result:
        """Run the world until `main` is done. The world stays open."""
        self.points.install()
        with gc_disabled(), bounded_callbacks(self.loop), self._databases.tracked(), timeouts_by_node_clocks():
            return self.loop.run_until_complete(main)

    def close(self) -> None:
        """Discard the world: unwind killed coroutines and remove the wrappers from the code's fault points."""
        self.points.uninstall()
        for host in self.hosts:
            self.loop.kill(host.life)
        self.loop.close()
        self._databases.close()


class SimulatedHost:
    """One life of a node: its ports, and the means to run code on it and to kill it."""

    def __init__(self, world: World, life: Life) -> None:
        self.world = world
        self.life = life
        self.name = life.name
        self.disk = world.disk(life.name)
        self._workers = 0
        self._watchers: list[asyncio.Future[None]] = []
        self.port = Host(
            name=life.name,
            clock=world.clock(life.name),
            network=world.network.port(life),
            disk=self.disk.port(life, world.loop),
            entropy=SimulatedEntropy(world.seed, life),
            trace=self._trace,
            new_worker=self._new_worker,
        )
        """The ports that the node's code receives."""

    def start(self, coroutine: Coroutine[Any, Any, Result], *, name: str | None = None) -> asyncio.Task[Result]:
        """Run a coroutine as part of this node; it ends with the node. To wait for it from outside use `call`, which notices a kill."""
        return self.world.loop.start_task(
            coroutine, name=f"{self.name}: {name or getattr(coroutine, '__qualname__', 'call')}", context=context_of(self.life)
        )

    async def call(self, coroutine: Coroutine[Any, Any, Result], *, name: str | None = None) -> Result:
        """Run a coroutine as part of this node and wait for it from outside.

        Raises:
            NodeDied: the node was killed before the coroutine ended.
        """
        task = self.start(coroutine, name=name)
        done = self.world.loop.create_future()

        def finished(_: object) -> None:
            resolve(done, None)

        # The callback belongs to the world: it must run even if the task's own node is dead by then.
        task.add_done_callback(finished, context=context_of(None))
        self._watchers.append(done)
        try:
            await done
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            self._watchers.remove(done)
        # A task that was using a port when its node died ends with HostCrashed, or with an error of its unwinding. Any other task stays
        # pending.
        if not task.done() or (not self.alive and (task.cancelled() or task.exception() is not None)):
            raise NodeDied(self.name)
        return task.result()

    @property
    def alive(self) -> bool:
        """Whether this life continues."""
        return self.life.alive

    @property
    def paused(self) -> bool:
        """Whether this life is paused."""
        return self.life.paused

    def pause(self) -> None:
        """Stop the process as SIGSTOP does: none of its code runs until `resume`. Peers see silence, not an end.

        Timers, bytes, and results of workers and log devices wait. The kernel continues: it accepts connections and buffers peers' bytes up
        to their capacity, delivers bytes already written, and completes a sync in progress.
        """
        if self.life.alive and not self.life.paused:
            self.world.recorder.fact(self.name, "host.pause", {"life": self.life.number})
            self.world.loop.pause(self.life)

    def resume(self) -> None:
        """Continue a paused process. Callbacks that came due meanwhile run now, in order. No effect when it is not paused."""
        if self.life.alive and self.life.paused:
            self.world.recorder.fact(self.name, "host.resume", {"life": self.life.number, "held": len(self.life.held)})
            self.world.loop.resume(self.life)

    def jump_clock(self, seconds: float) -> None:
        """Set the machine's wall clock forward or, with a negative value, back. Monotonic time is not affected."""
        self.world.recorder.fact(self.name, "host.clock_jump", {"seconds": seconds})
        self.world.clock(self.name).jump(seconds)

    def drift_clock(self, drift: float) -> None:
        """Change the rate of the machine's wall clock from now on by this share of time; 0 is exact. Monotonic time is not affected."""
        self.world.recorder.fact(self.name, "host.clock_drift", {"drift": drift})
        self.world.clock(self.name).drift_from_now(drift)

    def set_clock_rate(self, rate: float) -> None:
        """Run the machine's monotonic clock, and its wall clock with it, at this multiple of virtual time from now on."""
        self.world.recorder.fact(self.name, "host.clock_rate", {"rate": rate})
        self.world.clock(self.name).set_rate(rate)

    def crash(self, *, silent: bool = False, keep_unsynced: bool = False) -> None:
        """Kill the node, paused or not, as SIGKILL does or, with its unsynced writes, as a power failure does. None of its code runs again.

        Args:
            silent: peers get no reset, since the machine is off. Otherwise they get the resets that a living kernel sends.
            keep_unsynced: only the process dies; the kernel keeps the data it has not yet written.
        """
        if not self.life.alive:
            return
        loop = self.world.loop
        self.world.recorder.fact(self.name, "host.crash", {"life": self.life.number, "silent": silent, "keep_unsynced": keep_unsynced})
        loop.kill(self.life)
        self.world.network.host_down(self.life, silent=silent)
        if keep_unsynced:
            self.disk.end_process()
        else:
            self.disk.crash()
        for watcher in self._watchers:
            resolve(watcher, None)

    def _trace(self, kind: str, /, **facts: object) -> None:
        self.life.check()
        self.world.recorder.fact(self.name, kind, facts)

    def _new_worker(self, name: str) -> SimulatedWorker:
        self.life.check()
        self._workers += 1
        rng = self.world.rng(self.name, self.life.number, "worker", name, self._workers)
        return SimulatedWorker(self.world.loop, self.disk, rng)


class NodeDied(Exception):
    """A node was killed while code outside of it waited for work that ran on it."""


class SimulatedClock:
    """`runtime.ports.Clock`: monotonic time is virtual time at the machine's own rate; wall time adds a fixed day and the machine's error.

    Timers follow the monotonic clock. If its rate falls while a timer waits, the timer waits longer. If the rate rises, the timer may be
    late, as timers may.

    Args:
        skew_s: how far the wall clock is ahead at virtual time 0.
        drift: how much more it gains in each second of the monotonic clock.
    """

    def __init__(self, loop: VirtualLoop, skew_s: float = 0.0, drift: float = 0.0) -> None:
        self._skew_s = skew_s
        self._drift = drift
        self._drifts_since = 0.0
        self._loop = loop
        self._rate = 1.0
        self._ahead_s = 0.0
        """How far the monotonic clock was ahead of the loop when its rate was last set."""
        self._rate_since = 0.0
        """The loop's time at that moment."""

    @property
    def rate(self) -> float:
        """Seconds of the clock's own time in a second of virtual time."""
        return self._rate

    def monotonic(self) -> float:
        return self._shown(self._loop.time())

    def _shown(self, moment: float) -> float:
        """The clock's value at a moment of the loop, at the present rate."""
        # In this form a clock that was never wrong returns the loop's own time, to the last bit.
        return moment + self._ahead_s + (moment - self._rate_since) * (self._rate - 1.0)

    def loop_time(self, when: float) -> float:
        """The loop's time at which the monotonic clock reaches, or reached, a moment, at the present rate."""
        if self._rate == 1.0 and not self._ahead_s:
            return when
        moment = self._rate_since + (when - self._rate_since - self._ahead_s) / self._rate
        step = math.ulp(moment)
        # Rounding may make it slightly too early. A waiter woken then would find that its time has not come and wait again, for ever.
        while self._shown(moment) < when:
            moment += step
            step *= 2.0
        return moment

    def elapsed(self) -> float:
        return self.monotonic()

    def wall_us(self) -> int:
        now = self.monotonic()
        return EPOCH_US + round((now + self._skew_s + self._drift * (now - self._drifts_since)) * 1e6)

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> Timer:
        if self._rate == 1.0 and not self._ahead_s:
            return self._loop.call_at(when, callback, *args)
        return _RatedTimer(self, self._loop, when, callback, args)

    def set_rate(self, rate: float) -> None:
        """Run the monotonic clock at another rate from now on.

        Raises:
            ValueError: the rate is 0 or negative.
        """
        if rate <= 0.0:
            raise ValueError(f"a monotonic clock does not run at {rate}")
        now = self._loop.time()
        self._ahead_s += (now - self._rate_since) * (self._rate - 1.0)
        self._rate_since, self._rate = now, rate

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._skew_s += seconds

    def drift_from_now(self, drift: float) -> None:
        """Change the rate of the wall clock, without a jump."""
        now = self.monotonic()
        self._skew_s += self._drift * (now - self._drifts_since)
        self._drifts_since = now
        self._drift = drift


class _RatedTimer:
    """A timer of a clock whose time differs from the loop's."""

    def __init__(self, clock: SimulatedClock, loop: VirtualLoop, when: float, callback: Callable[..., None], args: tuple[Any, ...]) -> None:
        self._clock = clock
        self._loop = loop
        self._when = when
        self._callback = callback
        self._args = args
        self._handle: asyncio.TimerHandle | None = None
        self._arm()

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _arm(self) -> None:
        self._handle = self._loop.call_at(max(self._loop.time(), self._clock.loop_time(self._when)), self._fire)

    def _fire(self) -> None:
        if self._clock.monotonic() < self._when:
            self._arm()
        else:
            self._callback(*self._args)


@contextmanager
def timeouts_by_node_clocks() -> Iterator[None]:
    """Make deadlines that a node passes to asyncio follow the node's own clock.

    `runtime.timeout_at` receives moments of `Clock.monotonic` and relies on the loop's time being the same. Only here it is not.
    """
    by_loop = asyncio.timeout_at

    def timeout_at(when: float | None) -> asyncio.Timeout:
        life = LIFE.get()
        if when is not None and life is not None and life.loop_time is not None:
            when = life.loop_time(when)
        return by_loop(when)

    asyncio.timeout_at = timeout_at
    try:
        yield
    finally:
        asyncio.timeout_at = by_loop


class SimulatedEntropy:
    """`runtime.ports.Entropy`."""

    def __init__(self, seed: int, life: Life) -> None:
        self._seed = seed
        self._life = life
        self._streams: dict[str, random.Random] = {}

    def stream(self, purpose: str) -> random.Random:
        stream = self._streams.get(purpose)
        if stream is None:
            seed = derive_seed(self._seed, self._life.name, self._life.number, "entropy", purpose)
            stream = self._streams[purpose] = random.Random(seed)
        return stream

    def secret(self, size: int) -> bytes:
        return self.stream("secrets").randbytes(size)


class SimulatedWorker:
    """`runtime.ports.Worker`: a function runs inline at a scheduled instant, and its result arrives at a later one.

    A function is therefore atomic to the loop. State that it shares with the loop here must not be shared in reality.
    """

    WAKE_LOW_S = 0.00001
    WAKE_HIGH_S = 0.0004

    def __init__(self, loop: VirtualLoop, disk: SimulatedDisk, rng: random.Random) -> None:
        self._loop = loop
        self._disk = disk
        self._rng = rng
        self._queue: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()
        self._busy = False
        self._closed = False
        self._idle: list[asyncio.Future[None]] = []

    def run(self, function: Callable[..., Result], *args: Any, answer: asyncio.Future[Result] | None = None) -> asyncio.Future[Result]:
        if self._closed:
            raise RuntimeError("the worker is closed")
        future: asyncio.Future[Result] = self._loop.create_future() if answer is None else answer
        context = contextvars.copy_context()
        self._queue.append((future, lambda: context.run(function, *args)))
        if not self._busy:
            self._busy = True
            self._wake()
        return future

    async def close(self) -> None:
        self._closed = True
        if self._busy:
            idle = self._loop.create_future()
            self._idle.append(idle)
            await idle

    def _wake(self) -> None:
        self._loop.call_later(self._rng.uniform(self.WAKE_LOW_S, self.WAKE_HIGH_S), self._work)

    def _work(self) -> None:
        future, function = self._queue.popleft()
        # As with the executors of the standard library, cancelling a wait before the function began cancels the function.
        if future.cancelled():
            self._after(future, None, None)
            return
        self._disk.pop_io_time()
        try:
            result, error = function(), None
        except Exception as fault:  # noqa: BLE001 - it is handed to the waiter, as a thread would
            result, error = None, fault
        delay_s = self._disk.pop_io_time() + self._rng.uniform(self.WAKE_LOW_S, self.WAKE_HIGH_S)
        self._loop.call_later(delay_s, self._after, future, result, error)

    def _after(self, future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
        if error is None:
            resolve(future, result)
        else:
            fail(future, error, is_logged=True)
        if self._queue:
            self._wake()
            return
        self._busy = False
        resolve_all(self._idle)


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Keep the cycle collector from running during a simulation, where its timing differs from process to process."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
