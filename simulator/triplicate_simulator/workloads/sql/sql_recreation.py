"""A database that is dropped and made again under its name, or gets the name back, with operations that hang across that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from triplicate.client import Client
from triplicate.errors import SqlError
from triplicate.log import LogClientSettings, Logs
from triplicate.metadata import own_paths
from triplicate.sql import (
    Administrator,
    Placement,
    SqlDatabase,
    SqlSession,
    alter_placement,
    create_database,
    drop_database,
    dropped_databases,
    read_info,
    rename_database,
    set_administrator,
    undelete_database,
)
from triplicate.sql.hosting.dropping import purge_dropped
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.workloads.recreation.held_nodes import AtMetadata
from triplicate_simulator.workloads.recreation.recreation import LateOperation, NameHolder
from triplicate_simulator.workloads.recreation.replica_recreation import RECREATED, ReplicaRecreation
from triplicate_simulator.workloads.sql.sql_nodes import DatabaseServer

AWAY = "recreated-away"
"""The name of a database that gives its name up for a moment."""
NO_DATABASE = "3D000"
LATE_WEIGHT = 7.0
WEIGHTS = (2.0, 3.0)
VERIFIER = "SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVkIGtleSwgMzIgYnl0ZXMgb2YgbG9uZyBvbmU=:c2VydmVyIGtleSwgMzIgYnl0ZXMgb2YgbG9uZyBvbmU="
PURGE_TRANSACTIONS = 6
"""About the number of transactions of a purge."""

LATE_OPERATIONS = ("administrator", "weight", "drop", "drop", "rename", "undelete", "purge", "purge", "statement", "following")
AFTER_A_DROP = ("undelete", "purge", "following")
"""Those that drop the database before they hang."""

Change = Callable[[Client], Awaitable[object]]


class DatabaseRecreation(ReplicaRecreation):
    """See the module's docstring."""

    KIND = "database"

    def __init__(self, context: RunContext, servers: Mapping[str, DatabaseServer]) -> None:
        super().__init__(context, servers)
        self._late = ""
        """The name of the operation that hangs."""
        self._is_dropped = False
        """Whether its own drop is done."""

    # Nodes.

    def hosted(self, server: DatabaseServer) -> Any:
        return None if server.databases is None else server.databases.hosted.get(RECREATED)

    async def put(self, machine: SqlDatabase, value: bytes) -> None:
        await self._run(machine, "create table if not exists lives(value text primary key)")
        await self._run(machine, "insert into lives values (?) on conflict do nothing", value.decode())

    async def values(self, machine: SqlDatabase, *, leads: bool) -> tuple[bytes, ...]:
        rows = await self._run(machine, "select value from lives order by value")
        return tuple(str(value).encode() for (value,) in rows)

    async def _run(self, machine: SqlDatabase, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        session: SqlSession = await machine.session(self.OWNER)
        try:
            cursor = await session.start(await session.prepare(sql), parameters)
            rows: list[tuple[Any, ...]] = []
            while got := await cursor.fetch(50):
                rows += got
            await cursor.close()
            return rows
        finally:
            await session.close()

    # Lives.

    async def make(self, client: Client) -> bytes:
        return (await create_database(client, RECREATED)).identity

    async def read(self, client: Client) -> tuple[str | None, dict[str, str]]:
        await client.metadata.tree.sync(own_paths.database_path(client.metadata.own_root, RECREATED))
        try:
            info = await read_info(client, RECREATED)
        except SqlError as error:
            if error.sqlstate != NO_DATABASE:
                raise
            return None, {}
        administrator = "" if info.administrator is None else info.administrator.name
        return info.identity.hex(), {"weight": str(info.placement.weight), "administrator": administrator}

    async def remove(self, client: Client) -> None:
        for name in (RECREATED, AWAY):
            await _unless_missing(drop_database(client, name))
        await client.metadata.tree.sync(own_paths.dropped_path(client.metadata.own_root))
        while any(one.info.name in (RECREATED, AWAY) for one in await dropped_databases(client)):
            await purge_dropped(client, Logs(client, LogClientSettings()), 0.0)

    async def first_life(self, client: Client) -> None:
        await super().first_life(client)
        for _ in range(self.rng.choice((0, 1))):
            # So that the version of the next entry, which is changed too, is the same.
            await alter_placement(client, RECREATED, _weighing(WEIGHTS[0]))

    async def next_life(self, client: Client) -> NameHolder:
        await self.settled()
        life = await self._first_again(client)
        if life is None:
            await _unless_missing(drop_database(client, RECREATED))
            life = await self.write((await self.make(client)).hex())
            weight = self.rng.choice((1.0, *WEIGHTS))
            if weight != 1.0:
                await alter_placement(client, RECREATED, _weighing(weight))
            return replace(life, properties={"weight": str(weight), "administrator": ""})
        # A late change of another property is right, and must not take this one back.
        if self._late == "weight":
            await set_administrator(client, RECREATED, Administrator(self.OWNER, VERIFIER))
            return replace(life, properties={"administrator": self.OWNER})
        weight = self.rng.choice(WEIGHTS)
        await alter_placement(client, RECREATED, _weighing(weight))
        return replace(life, properties={"weight": str(weight)})

    async def _first_again(self, client: Client) -> NameHolder | None:
        """Take the name from the first one and give it back, in some cases. None if another one is to have it."""
        assert self.first is not None, "it is there"
        # A late drop or renaming of the same one would be right.
        if self._late in ("drop", "rename") or (self._late in AFTER_A_DROP and not self._is_dropped) or self.rng.random() < 0.5:
            return None
        if self._late in AFTER_A_DROP or self.rng.random() < 0.5:
            await _unless_missing(drop_database(client, RECREATED))
            try:
                await undelete_database(client, RECREATED)
            except SqlError as error:
                if error.sqlstate != NO_DATABASE:
                    raise
                return None  # Its log is being deleted.
        else:
            await rename_database(client, RECREATED, AWAY)
            await rename_database(client, AWAY, RECREATED)
        return await self.write(self.first.identity, is_first=True)

    # Operations that hang.

    def draw_operation(self) -> LateOperation:
        self._late, self._is_dropped = self.rng.choice(LATE_OPERATIONS), False
        if self._late == "statement":
            return self.draw_statement()
        if self._late == "following":
            return self.draw_following(self._drop_and_undelete)
        skip, operation = self._operations[self._late]
        return LateOperation(self.LATE, AtMetadata(skip(), "multi"), partial(self.on, self.LATE, operation))

    @property
    def _operations(self) -> dict[str, tuple[Callable[[], int], Change]]:
        """By name: the number of transactions before the one in which it hangs, and the operation."""
        return {
            "administrator": (lambda: 0, lambda client: set_administrator(client, RECREATED, Administrator(self.LATE, VERIFIER))),
            "weight": (lambda: 0, lambda client: alter_placement(client, RECREATED, _weighing(LATE_WEIGHT))),
            "drop": (lambda: 0, lambda client: drop_database(client, RECREATED)),
            "rename": (lambda: 0, lambda client: rename_database(client, RECREATED, AWAY)),
            "undelete": (lambda: 1, self._drop_and_undelete),
            "purge": (lambda: 1 + self.rng.randrange(PURGE_TRANSACTIONS), self._drop_and_purge),
        }

    async def _drop(self, client: Client) -> None:
        await drop_database(client, RECREATED)
        self._is_dropped = True

    async def _drop_and_undelete(self, client: Client) -> None:
        await self._drop(client)
        await undelete_database(client, RECREATED)

    async def _drop_and_purge(self, client: Client) -> None:
        await self._drop(client)
        await purge_dropped(client, Logs(client, LogClientSettings()), 0.0)


def _weighing(weight: float) -> Callable[[Placement], Placement]:
    return lambda placement: replace(placement, weight=weight)


async def _unless_missing(change: Awaitable[object]) -> None:
    try:
        await change
    except SqlError as error:
        if error.sqlstate != NO_DATABASE:
            raise
