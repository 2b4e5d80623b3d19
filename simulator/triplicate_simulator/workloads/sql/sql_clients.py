"""Clients of the database workload: some change data, some read copies, and one looks for a second leader."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partial

from triplicate.errors import SqlError
from triplicate.sim.host import NodeDied
from triplicate.sql import SqlDatabase
from triplicate_simulator.workloads.sql.sql_model import ClientSession, IdempotentRequest, SqlModel, open_client_session
from triplicate_simulator.workloads.sql.sql_nodes import DATABASE, DatabaseReplica
from triplicate_simulator.workloads.sql.sql_operations import (
    OPERATIONS,
    SCHEMA_OPERATIONS,
    ClientOperation,
    count_crowd,
    hold_snapshot,
    join_crowd,
    new_request,
    observe_copy,
    read_crowd_at_length,
    read_own_write,
    send_request,
    write_at_old_leader,
    write_register,
)

CATCH_UP_S = 3.0
"""Time that a reader of a copy waits for it to reach a position."""
LOOK_PAUSES_S = (0.0003, 0.02)
"""First and longest pause between its checks."""
NEWS_S = 2.0
FURTHER_SHARE = 4.0
"""Factor on the pauses of clients of further databases: each costs as much as a client of the first, which is to be busier."""
DOUBT_S = 0.05
CROWD_PAUSE_S = 2.5
"""Average pause between two crowds."""
CROWD_SPREADS_S = (0.0005, 0.003, 0.01)
"""Time within which the statements of a crowd come: about as long as an append."""
READERS_LATER = 4.0
CROWD_WORKS: tuple[ClientOperation, ...] = (join_crowd, count_crowd, read_crowd_at_length)
CROWD_WEIGHTS = (10, 3, 1)
REPEAT_MAX_S, LINGER_MAX_S = 60.0, 10.0
"""Clients wait for the limits of kept results and of reading transactions only if these are shorter."""


async def run_session(
    model: SqlModel, name: str, server: DatabaseReplica, rng: random.Random, work: ClientOperation, timeout_s: float
) -> bool:
    """Do some work in a session with one node. Returns whether it was done."""

    async def converse(database: SqlDatabase) -> None:
        async with open_client_session(model, name, server, database, rng) as session:
            await work(session)

    try:
        async with asyncio.timeout(timeout_s):
            await server.call(converse)
    except (SqlError, NodeDied, TimeoutError) as error:
        model.context.count_unknown(error)
        return False
    return True


class DatabaseClient(ABC):
    """One client: not a node of its own, but an application that connects to any node."""

    def __init__(self, model: SqlModel, name: str) -> None:
        self.name = name
        self._model = model
        self._rng = model.context.rng(name)

    async def run(self) -> None:
        """Continue until the faults are over."""
        while not self._model.context.faults_over.is_set():
            await self._step()

    @abstractmethod
    async def _step(self) -> None: ...

    async def _visit(self, server: DatabaseReplica, work: ClientOperation) -> bool:
        return await run_session(self._model, self.name, server, self._rng, work, self._model.load.timeout_s)

    async def _pause(self, share: float = 1.0) -> None:
        if self._model.database != DATABASE:
            share *= FURTHER_SHARE
        await asyncio.sleep(self._rng.expovariate(1.0 / (share * self._model.load.pause_mean_s)))


class MutatingClient(DatabaseClient):
    """Changes data, mostly at a node that considers itself leader."""

    def __init__(self, model: SqlModel, name: str) -> None:
        super().__init__(model, name)
        # Each client has weights of its own, so that runs differ in kind.
        self._works = [
            (work, weight * self._rng.choice([0, 1, 1, 3]))
            for kind, (work, weight) in OPERATIONS.items()
            if model.load.tables or kind not in SCHEMA_OPERATIONS
        ]
        self._works.append((write_register, 1))

    async def _step(self) -> None:
        await self._pause()
        await asyncio.sleep(max(0.0, self._model.lull_until_s - self._model.context.time()))
        server = self._choose()
        if server is not None:
            await self._converse(server)

    def _choose(self) -> DatabaseReplica | None:
        candidates = self._model.leaders()
        if self._rng.random() < 0.8:
            del candidates[1:]
        if not candidates or self._rng.random() < 0.1:
            candidates = [server for server in self._model.servers.values() if server.database is not None]
        return self._rng.choice(candidates) if candidates else None

    async def _converse(self, server: DatabaseReplica) -> None:
        request: IdempotentRequest | None = None
        if self._model.requests and self._rng.random() < 0.6:
            request = self._model.requests.popleft()

        async def work(session: ClientSession) -> None:
            nonlocal request
            if request is None and self._rng.random() < 0.2:
                request = new_request(session)
            if request is not None and (session.leads or request.kind != "transfer"):
                await send_request(session, request)
            if not session.leads:
                await observe_copy(session)
                return
            if self._model.answered and self._rng.random() < 0.1:
                await _send_again(session, self._rng.choice(list(self._model.answered)))
            await self._resolve(session)
            for _ in range(self._rng.randrange(1, 4)):
                (chosen,) = self._rng.choices([work for work, _ in self._works], [weight for _, weight in self._works])
                await chosen(session)
                await session.think()

        await self._visit(server, work)
        if request is not None and not request.over:
            (self._model.answered if request.done else self._model.requests).append(request)

    async def _resolve(self, session: ClientSession) -> None:
        for token in list(self._model.unresolved)[:2]:
            await session.resolve(token)


async def _send_again(session: ClientSession, request: IdempotentRequest) -> None:
    await send_request(session, request)
    if request.over and request in session.model.answered:
        session.model.answered.remove(request)


class CopyReader(DatabaseClient):
    """Reads copies, mostly to find a write that was just acknowledged elsewhere."""

    def __init__(self, model: SqlModel, name: str) -> None:
        super().__init__(model, name)
        self._news = model.subscribe()

    async def _step(self) -> None:
        await self._pause(2.0)
        work: ClientOperation = observe_copy
        if self._rng.random() < 0.6:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(NEWS_S):
                    await self._news.wait()
            if self._model.recent:
                token, position = self._rng.choice([self._model.recent[-1], self._rng.choice(list(self._model.recent))])
                work = partial(_read_when_applied, token=token, position=position)
        servers = [server for server in self._model.servers.values() if server.database is not None]
        if servers:
            await self._visit(self._rng.choice(servers), work)


async def _read_when_applied(session: ClientSession, token: str, position: int) -> None:
    give_up_s = session.time() + CATCH_UP_S
    pause_s, longest_s = LOOK_PAUSES_S
    while session.database.position < position:
        if session.time() > give_up_s:
            return
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.1, longest_s)
    await read_own_write(session, token, position)


class StaleLeaderClient(DatabaseClient):
    """If more than one node considers itself leader, writes at the latest of them and reads at the others."""

    async def _step(self) -> None:
        await asyncio.sleep(DOUBT_S)
        leaders = self._model.leaders()
        register = self._rng.choice(self._model.registers)
        if len(leaders) > 1 and await self._visit(leaders[0], partial(write_register, register=register)):
            timeout_s = self._rng.choice([0.5, self._model.load.timeout_s])
            work = partial(write_at_old_leader, register=register)
            await run_session(self._model, self.name, self._rng.choice(leaders[1:]), self._rng, work, timeout_s)


class CrowdClient(DatabaseClient):
    """Many clients that each send one short statement within a few milliseconds, so that groups of them are at the log together."""

    async def _step(self) -> None:
        await asyncio.sleep(self._rng.expovariate(1.0 / CROWD_PAUSE_S))
        await asyncio.sleep(max(0.0, self._model.lull_until_s - self._model.context.time()))
        leaders = self._model.leaders()
        if not leaders:
            return
        self._model.counts["crowds"] += 1
        spread_s = self._rng.choice(CROWD_SPREADS_S)
        members = [
            self._model.context.world.loop.start_task(self._visit_alone(number, leaders[0], spread_s), name=f"{self.name} {number}")
            for number in range(self._model.load.crowd)
        ]
        for member in members:
            await member

    async def _visit_alone(self, number: int, server: DatabaseReplica, spread_s: float) -> None:
        work = self._rng.choices(CROWD_WORKS, CROWD_WEIGHTS)[0]
        # Readers also come later, when the first groups may be acknowledged.
        delay_s = self._rng.uniform(0.0, spread_s if work is join_crowd else READERS_LATER * spread_s)

        async def act(session: ClientSession) -> None:
            await asyncio.sleep(delay_s)
            if session.leads:
                await work(session)

        await run_session(self._model, f"{self.name}-{number}", server, self._rng, act, self._model.load.timeout_s)


class RequestRepeater(DatabaseClient):
    """Repeats requests that were answered a while ago, under the same ids, when they may be too old to be known."""

    async def _step(self) -> None:
        await self._pause(2.0)
        leaders, answered = self._model.leaders(), list(self._model.answered)
        if leaders and answered:
            await self._visit(leaders[0], partial(_send_again, request=answered[0]))


class SnapshotHolder(DatabaseClient):
    """Holds snapshots for as long as a node allows, and longer."""

    async def _step(self) -> None:
        await self._pause(2.0)
        servers = [server for server in self._model.servers.values() if server.database is not None]
        if servers:
            await self._visit(self._rng.choice(servers), hold_snapshot)


def clients_of(model: SqlModel) -> list[DatabaseClient]:
    """All clients of a database."""
    load = model.load
    if model.database != DATABASE:
        return (
            [MutatingClient(model, f"talker of {model.database}"), CopyReader(model, f"watcher of {model.database}")]
            if load.talkers
            else []
        )
    clients: list[DatabaseClient] = [MutatingClient(model, f"talker-{number + 1}") for number in range(load.talkers)]
    clients += [CopyReader(model, f"watcher-{number + 1}") for number in range(load.watchers)]
    if clients:
        clients.append(StaleLeaderClient(model, "doubter"))
    if load.crowd:
        clients.append(CrowdClient(model, "crowd"))
    if clients and load.request_keep_s < REPEAT_MAX_S:
        clients.append(RequestRepeater(model, "repeater"))
    if clients and min(load.read_idle_s, load.snapshot_limit_s) < LINGER_MAX_S:
        clients.append(SnapshotHolder(model, "lingerer"))
    return clients
