"""Clients of the database on all nodes. They survive the loss of their connections, and note each answer with its node and time."""

from __future__ import annotations

import asyncio
import threading
import time
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import count

import asyncpg

ANSWER_LIMIT_S = 0.5
PAUSE_S = 0.01
_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""An internal error is met on a connection that ends while a statement is sent."""


@dataclass
class Writes:
    """The acknowledgements of a run. Changed on their thread, and read on others."""

    acknowledged: list[int] = field(default_factory=list)
    unknown: set[int] = field(default_factory=set)
    begun_at: list[float] = field(default_factory=list)
    """Start time of each acknowledged write."""
    acknowledged_at: list[float] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    """Address of the node of each acknowledged write."""
    epochs: set[int] = field(default_factory=set)
    """The epochs of the leaders that have answered."""

    def first_after(self, moment: float) -> float | None:
        """When the first write was acknowledged that was begun after a moment; None while there is none."""
        for index in range(bisect_right(self.acknowledged_at, moment), len(self.acknowledged_at)):
            if self.begun_at[index] > moment:
                return self.acknowledged_at[index]
        return None


class Writers:
    """Writers at every node, on a thread: each inserts row after row where its node leads. Use it as a context manager.

    Args:
        addresses: host and port of each node.
        each: writers at one node.
        answer_limit_s: a node that does not answer within this time is asked on another connection.
        pause_s: after an answer that the node does not lead, and after an error.
    """

    def __init__(
        self,
        addresses: list[tuple[str, int]],
        database: str,
        each: int = 1,
        answer_limit_s: float = ANSWER_LIMIT_S,
        pause_s: float = PAUSE_S,
    ) -> None:
        self.writes = Writes()
        self._addresses = addresses * each
        self._database = database
        self._answer_limit_s = answer_limit_s
        self._pause_s = pause_s
        self._numbers = count(1)
        self._stopping = False
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="writers", daemon=True)

    def __enter__(self) -> Writes:
        self._thread.start()
        return self.writes

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self._thread.join(30.0)

    async def _run(self) -> None:
        # asyncpg leaves futures behind where the wait for a connection ends.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        async with asyncio.TaskGroup() as group:
            for host, port in self._addresses:
                group.create_task(self._write_at(host, port))

    async def _write_at(self, host: str, port: int) -> None:
        while not self._stopping:
            connection: asyncpg.Connection | None = None
            try:
                async with asyncio.timeout(self._answer_limit_s):
                    connection = await asyncpg.connect(host=host, port=port, user="bench", database=self._database)
                while not self._stopping:
                    try:
                        await self._write(connection, host)
                    except asyncpg.ReadOnlySQLTransactionError:
                        await asyncio.sleep(self._pause_s)
            except _ERRORS:
                await asyncio.sleep(self._pause_s)
            finally:
                if connection is not None:
                    connection.terminate()

    async def _write(self, connection: asyncpg.Connection, host: str) -> None:
        number, began = next(self._numbers), time.monotonic()
        self.writes.unknown.add(number)
        async with asyncio.timeout(self._answer_limit_s):
            epoch = await connection.fetchval("insert into rows values($1) returning pg_current_xact_id() >> 40", number)
        self.writes.unknown.discard(number)
        self.writes.epochs.add(int(epoch))
        self.writes.acknowledged.append(number)
        self.writes.hosts.append(host)
        self.writes.begun_at.append(began)
        self.writes.acknowledged_at.append(time.monotonic())
