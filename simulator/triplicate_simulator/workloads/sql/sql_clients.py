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
    hold_snapshot,
    new_request,
    observe_copy,
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
DOUBT_S = 0.1
REPEAT_MAX_S, LINGER_MAX_S = 60.0, 10.0
"""Clients wait for the limits of kept results and of reading transactions only if these are shorter."""


async def run_session(
    desk: SqlModel, name: str, server: DatabaseReplica, chance: random.Random, work: ClientOperation, patience_s: float
) -> bool:
    """Do some work in a session with one node. Returns whether it was done."""

    async def converse(database: SqlDatabase) -> None:
        async with open_client_session(desk, name, server, database, chance) as talk:
            await work(talk)

    try:
        async with asyncio.timeout(patience_s):
            await server.call(converse)
    except (SqlError, NodeDied, TimeoutError) as error:
        desk.stage.note_unknown(error)
        return False
    return True


class DatabaseClient(ABC):
    """One client: not a node of its own, but an application that connects to any node."""

    def __init__(self, desk: SqlModel, name: str) -> None:
        self.name = name
        self._desk = desk
        self._chance = desk.stage.chance(name)

    async def run(self) -> None:
        """Continue until the faults are over."""
        while not self._desk.stage.quiet.is_set():
            await self._step()

    @abstractmethod
    async def _step(self) -> None: ...

    async def _visit(self, server: DatabaseReplica, work: ClientOperation) -> bool:
        return await run_session(self._desk, self.name, server, self._chance, work, self._desk.load.patience_s)

    async def _pause(self, share: float = 1.0) -> None:
        if self._desk.database != DATABASE:
            share *= FURTHER_SHARE
        await asyncio.sleep(self._chance.expovariate(1.0 / (share * self._desk.load.pause_mean_s)))


class MutatingClient(DatabaseClient):
    """Changes data, mostly at a node that considers itself leader."""

    def __init__(self, desk: SqlModel, name: str) -> None:
        super().__init__(desk, name)
        # Each client has weights of its own, so that runs differ in kind.
        self._works = [
            (work, weight * self._chance.choice([0, 1, 1, 3]))
            for kind, (work, weight) in OPERATIONS.items()
            if desk.load.tables or kind not in SCHEMA_OPERATIONS
        ]
        self._works.append((write_register, 1))

    async def _step(self) -> None:
        await self._pause()
        await asyncio.sleep(max(0.0, self._desk.lull_until_s - self._desk.stage.time()))
        server = self._choose()
        if server is not None:
            await self._converse(server)

    def _choose(self) -> DatabaseReplica | None:
        candidates = self._desk.leaders()
        if self._chance.random() < 0.8:
            del candidates[1:]
        if not candidates or self._chance.random() < 0.1:
            candidates = [server for server in self._desk.servers.values() if server.database is not None]
        return self._chance.choice(candidates) if candidates else None

    async def _converse(self, server: DatabaseReplica) -> None:
        request: IdempotentRequest | None = None
        if self._desk.requests and self._chance.random() < 0.6:
            request = self._desk.requests.popleft()

        async def work(talk: ClientSession) -> None:
            nonlocal request
            if request is None and self._chance.random() < 0.2:
                request = new_request(talk)
            if request is not None and (talk.leads or request.kind != "transfer"):
                await send_request(talk, request)
            if not talk.leads:
                await observe_copy(talk)
                return
            if self._desk.answered and self._chance.random() < 0.1:
                await _send_again(talk, self._chance.choice(list(self._desk.answered)))
            await self._resolve(talk)
            for _ in range(self._chance.randrange(1, 4)):
                (chosen,) = self._chance.choices([work for work, _ in self._works], [weight for _, weight in self._works])
                await chosen(talk)
                await talk.think()

        await self._visit(server, work)
        if request is not None and not request.over:
            (self._desk.answered if request.done else self._desk.requests).append(request)

    async def _resolve(self, talk: ClientSession) -> None:
        for token in list(self._desk.unresolved)[:2]:
            await talk.resolve(token)


async def _send_again(talk: ClientSession, request: IdempotentRequest) -> None:
    await send_request(talk, request)
    if request.over and request in talk.desk.answered:
        talk.desk.answered.remove(request)


class CopyReader(DatabaseClient):
    """Reads copies, mostly to find a write that was just acknowledged elsewhere."""

    def __init__(self, desk: SqlModel, name: str) -> None:
        super().__init__(desk, name)
        self._news = desk.listen()

    async def _step(self) -> None:
        await self._pause(2.0)
        work: ClientOperation = observe_copy
        if self._chance.random() < 0.6:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(NEWS_S):
                    await self._news.wait()
            if self._desk.recent:
                token, position = self._chance.choice([self._desk.recent[-1], self._chance.choice(list(self._desk.recent))])
                work = partial(_read_when_applied, token=token, position=position)
        servers = [server for server in self._desk.servers.values() if server.database is not None]
        if servers:
            await self._visit(self._chance.choice(servers), work)


async def _read_when_applied(talk: ClientSession, token: str, position: int) -> None:
    give_up_s = talk.time() + CATCH_UP_S
    pause_s, longest_s = LOOK_PAUSES_S
    while talk.database.position < position:
        if talk.time() > give_up_s:
            return
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.1, longest_s)
    await read_own_write(talk, token, position)


class StaleLeaderClient(DatabaseClient):
    """If more than one node considers itself leader, writes at the latest of them and reads at the others."""

    async def _step(self) -> None:
        await asyncio.sleep(DOUBT_S)
        leaders = self._desk.leaders()
        register = self._chance.choice(self._desk.registers)
        if len(leaders) > 1 and await self._visit(leaders[0], partial(write_register, register=register)):
            patience_s = self._chance.choice([0.5, self._desk.load.patience_s])
            work = partial(write_at_old_leader, register=register)
            await run_session(self._desk, self.name, self._chance.choice(leaders[1:]), self._chance, work, patience_s)


class RequestRepeater(DatabaseClient):
    """Repeats requests that were answered a while ago, under the same ids, when they may be too old to be known."""

    async def _step(self) -> None:
        await self._pause(2.0)
        leaders, answered = self._desk.leaders(), list(self._desk.answered)
        if leaders and answered:
            await self._visit(leaders[0], partial(_send_again, request=answered[0]))


class SnapshotHolder(DatabaseClient):
    """Holds snapshots for as long as a node allows, and longer."""

    async def _step(self) -> None:
        await self._pause(2.0)
        servers = [server for server in self._desk.servers.values() if server.database is not None]
        if servers:
            await self._visit(self._chance.choice(servers), hold_snapshot)


def clients_of(desk: SqlModel) -> list[DatabaseClient]:
    """All clients of a database."""
    load = desk.load
    if desk.database != DATABASE:
        return [MutatingClient(desk, f"talker of {desk.database}"), CopyReader(desk, f"watcher of {desk.database}")] if load.talkers else []
    clients: list[DatabaseClient] = [MutatingClient(desk, f"talker-{number + 1}") for number in range(load.talkers)]
    clients += [CopyReader(desk, f"watcher-{number + 1}") for number in range(load.watchers)]
    if clients:
        clients.append(StaleLeaderClient(desk, "doubter"))
    if clients and load.request_keep_s < REPEAT_MAX_S:
        clients.append(RequestRepeater(desk, "repeater"))
    if clients and min(load.read_idle_s, load.snapshot_limit_s) < LINGER_MAX_S:
        clients.append(SnapshotHolder(desk, "lingerer"))
    return clients
