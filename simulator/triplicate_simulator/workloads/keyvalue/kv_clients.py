"""Clients of the workload of key-value stores: some change keys, some read copies at the position of a write, and some watch."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress

from triplicate.errors import NotLeading, PlaceLost, StoreError, StoreUnavailable
from triplicate.kv import (
    Add,
    BatchResult,
    Condition,
    Expiry,
    KeyExists,
    Operation,
    Put,
    ReplicatedStore,
    StoreBatch,
    ValueIs,
    session,
)
from triplicate.sim.host import NodeDied
from triplicate_simulator.checkers.store_rules import ExpiringRead, SessionRead, StoreWritten, WatchBegan, WatchedChange, WatchEnded
from triplicate_simulator.workloads.keyvalue.kv_model import RecentWrite, StoreModel
from triplicate_simulator.workloads.keyvalue.kv_nodes import StoreServer

WATCHED = "watched"
"""Prefix of the keys that are watched and never deleted."""
TTL_MS = (1, 200, 1500, 6000)
LATE_S = (0.0, 0.1, 1.0, 4.0)
"""Times after which a key with a deadline is read."""
SESSION_WAIT_S = 2.0
LOOK_S = 0.05
NOT_DONE = (NotLeading, StoreUnavailable)
"""Errors after which nothing was changed."""


class StoreClient(ABC):
    """One client: not a node of its own, but an application that connects to any node."""

    def __init__(self, model: StoreModel, name: str) -> None:
        self.name = name
        self._model = model
        self._rng = model.context.rng(name)

    async def run(self) -> None:
        """Continue until the faults are over."""
        while not self._model.context.faults_over.is_set():
            await self._step()

    @abstractmethod
    async def _step(self) -> None: ...

    async def _visit(self, server: StoreServer, work: Callable[[ReplicatedStore], Awaitable[None]]) -> None:
        """Do some work with the store of a node."""
        try:
            async with asyncio.timeout(self._model.load.timeout_s):
                await server.call_store(work)
        except (StoreError, NodeDied, TimeoutError) as error:
            self._model.counts["unknown"] += 1
            self._model.context.count_unknown(error)

    async def _pause(self, share: float = 1.0) -> None:
        await asyncio.sleep(self._rng.expovariate(1.0 / (share * self._model.load.pause_mean_s)))


class ChangingClient(StoreClient):
    """Changes and reads keys, mostly at a node that considers itself leader, also at a former one."""

    async def _step(self) -> None:
        await self._pause()
        leaders = self._model.leaders()
        if not leaders:
            await asyncio.sleep(LOOK_S)
            return
        server = self._rng.choice(leaders) if self._rng.random() < 0.3 else leaders[0]
        is_lull = self._model.context.time() < self._model.lull_until_s
        works = [self._read]
        if not is_lull:
            works += [self._write, self._swap, self._add, self._burst, self._write_watched, self._expiring]
        await self._visit(server, self._rng.choice(works))

    def _register(self) -> str:
        return f"register{self._rng.randrange(self._model.load.registers)}"

    async def _read(self, store: ReplicatedStore) -> None:
        register = self._register()
        operation = self._model.invoke(self.name, register, "read")
        found = store.try_get(register.encode()) or await store.get(register.encode())
        value = 0 if found.record is None else int(found.record.value)
        self._model.last_values[register] = value
        self._model.returned(operation, value)

    async def _change(self, store: ReplicatedStore, operation: int, batch: StoreBatch) -> BatchResult:
        """Run a batch that is an operation on a register. Raises StoreError."""
        try:
            return await store.submit(batch)
        except NOT_DONE:
            self._model.refused(operation)
            raise

    async def _write(self, store: ReplicatedStore) -> None:
        register, value = self._register(), self._model.value()
        operation = self._model.invoke(self.name, register, "write", (value,))
        await self._change(store, operation, StoreBatch([Put(register.encode(), b"%d" % value)]))
        self._model.returned(operation, None)

    async def _swap(self, store: ReplicatedStore) -> None:
        register, value = self._register(), self._model.value()
        expected = self._model.last_values.get(register, 0)
        operation = self._model.invoke(self.name, register, "swap", (expected, value))
        condition: Condition = ValueIs(register.encode(), b"%d" % expected) if expected else KeyExists(register.encode(), expected=False)
        result = await self._change(store, operation, StoreBatch([Put(register.encode(), b"%d" % value)], [condition]))
        self._model.returned(operation, result.held)

    async def _add(self, store: ReplicatedStore) -> None:
        counter = f"counter{self._rng.randrange(2)}"
        operation = self._model.invoke(self.name, counter, "add", (1,))
        result = await self._change(store, operation, StoreBatch([Add(counter.encode(), 1)]))
        self._model.returned(operation, int(result.outcomes[0].value or b"0"))

    async def _burst(self, store: ReplicatedStore) -> None:
        """Many changes at a time, so that several groups are at the log."""
        self._model.counts["bursts"] += 1
        async with asyncio.TaskGroup() as group:
            for _ in range(self._model.load.burst):
                group.create_task(self._one_of_burst(store))
                if self._rng.random() < 0.3:
                    await asyncio.sleep(self._rng.uniform(0.0, 0.004))

    async def _one_of_burst(self, store: ReplicatedStore) -> None:
        with suppress(StoreError):
            await self._rng.choice([self._add, self._swap, self._write_watched])(store)

    async def _write_watched(self, store: ReplicatedStore) -> None:
        key, value = f"{WATCHED}{self._rng.randrange(4)}", str(self._model.value())
        operations: list[Operation] = [Put(key.encode(), value.encode()), Put(b"beside", b"1")]
        result = await store.submit(StoreBatch(operations))
        self._model.note(StoreWritten(self._model.context.time(), key, value, result.position))
        self._model.recent.append(RecentWrite(key, result.position))

    async def _expiring(self, store: ReplicatedStore) -> None:
        """Store a key with a deadline, and read it before and after, at any node that leads then."""
        key = f"short{self._model.value()}"
        await store.submit(StoreBatch([Put(key.encode(), b"1", Expiry(after_ms=self._rng.choice(TTL_MS)))]))
        self._model.context.world.loop.start_task(self._read_expiring(key, self._rng.choice(LATE_S)), name=f"reader of {key}")

    async def _read_expiring(self, key: str, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        for _ in range(4):
            for server in self._model.leaders():
                await self._visit(server, lambda store: self._look_at(store, key))
            await asyncio.sleep(self._rng.uniform(0.0, 0.5))

    async def _look_at(self, store: ReplicatedStore, key: str) -> None:
        began_s = self._model.context.time()
        found = store.try_get(key.encode()) or await store.get(key.encode())
        self._model.counts["expiring_reads"] += 1
        self._model.note(ExpiringRead(began_s, self._model.context.time(), key, found.record is not None))


class DoubtingClient(ChangingClient):
    """If more than one node considers itself leader, writes at the latest of them and reads the same key at another."""

    def __init__(self, model: StoreModel, name: str) -> None:
        super().__init__(model, name)
        self._chosen = "register0"

    def _register(self) -> str:
        return self._chosen

    async def _step(self) -> None:
        await asyncio.sleep(LOOK_S)
        leaders = self._model.leaders()
        self._chosen = f"register{self._rng.randrange(self._model.load.registers)}"
        if len(leaders) > 1:
            await self._visit(leaders[0], self._write)
            await self._visit(self._rng.choice(leaders[1:]), self._read)


class SessionReader(StoreClient):
    """Reads any copy at the position of a write that was just acknowledged elsewhere."""

    async def _step(self) -> None:
        await self._pause()
        servers = [server for server in self._model.servers.values() if server.store is not None]
        if servers and self._model.recent:
            recent = self._rng.choice([self._model.recent[-1], self._rng.choice(list(self._model.recent))])
            server = self._rng.choice(servers)
            await self._visit(server, lambda store: self._read(store, server.name, recent))

    async def _read(self, store: ReplicatedStore, node: str, recent: RecentWrite) -> None:
        found = await store.get(recent.key.encode(), session(recent.position, SESSION_WAIT_S))
        version = 0 if found.record is None else found.record.version
        self._model.counts["session_reads"] += 1
        self._model.note(SessionRead(self._model.context.time(), node, recent.key, recent.position, version, found.position), node)


class WatchingClient(StoreClient):
    """Watches a prefix on any node. When the watch ends, it goes on at another node from its position. A lost place ends it, and another
    watcher begins.
    """

    def __init__(self, model: StoreModel, name: str) -> None:
        super().__init__(model, name)
        self._watcher = ""
        self._count = 0
        self._position: int | None = None

    async def _step(self) -> None:
        servers = [server for server in self._model.servers.values() if server.store is not None]
        if not servers:
            await asyncio.sleep(LOOK_S)
            return
        await self._visit(self._rng.choice(servers), self._watch)
        await self._pause()

    async def _watch(self, store: ReplicatedStore) -> None:
        try:
            watch = await store.watch(WATCHED.encode(), self._position)
            if self._position is None:
                self._count += 1
                self._watcher = f"{self.name}-{self._count}"
                self._position = watch.position
                self._model.note(WatchBegan(self._watcher, watch.position))
            async with asyncio.timeout(self._rng.uniform(0.5, 3.0)), watch:
                while True:
                    changes = await anext(watch)
                    for change in changes:
                        self._model.counts["watched"] += 1
                        self._model.note(WatchedChange(self._watcher, change.position, change.key.decode(), (change.value or b"").decode()))
                    self._position = watch.position
        except PlaceLost:
            self.end()
        except TimeoutError:
            return

    def end(self) -> None:
        """Record the place that the watcher has reached."""
        if self._position is not None:
            self._model.note(WatchEnded(self._watcher, self._position))
            self._position = None


def clients_of(model: StoreModel) -> list[StoreClient]:
    """All clients of the store."""
    clients: list[StoreClient] = [ChangingClient(model, f"talker-{number + 1}") for number in range(model.load.talkers)]
    clients.append(DoubtingClient(model, "doubter"))
    clients += [SessionReader(model, f"reader-{number + 1}") for number in range(model.load.watchers)]
    clients += [WatchingClient(model, f"watcher-{number + 1}") for number in range(model.load.watchers)]
    return clients


async def write_last(model: StoreModel, rng: random.Random, timeout_s: float) -> int:
    """Make a change at a leader, with as many attempts as needed. Returns its position."""
    while True:
        for server in model.leaders():
            with suppress(StoreError, NodeDied, TimeoutError):
                async with asyncio.timeout(timeout_s):
                    result = await server.call_store(lambda store: store.execute(StoreBatch([Put(b"last", b"%d" % model.value())])))
                    return result.position
        await asyncio.sleep(rng.uniform(LOOK_S, 2 * LOOK_S))
