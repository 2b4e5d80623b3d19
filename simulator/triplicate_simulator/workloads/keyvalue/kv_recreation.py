"""A store that is dropped and made again under its name, with operations that hang across that."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from triplicate.client import Client
from triplicate.errors import NoSuchStore
from triplicate.kv import ANY, LINEARIZABLE, KeyRange, Put, ReplicatedStore, StoreBatch, create_store, drop_store, read_store
from triplicate.metadata import own_paths
from triplicate_simulator.workloads.keyvalue.kv_nodes import StoreServer
from triplicate_simulator.workloads.recreation.held_nodes import AtMetadata
from triplicate_simulator.workloads.recreation.recreation import LateOperation, NameHolder
from triplicate_simulator.workloads.recreation.replica_recreation import RECREATED, ReplicaRecreation
from triplicate_simulator.workloads.sql.sql_nodes import DatabaseServer

LATE_OPERATIONS = ("drop", "drop", "drop", "statement", "following")
DROP_TRANSACTIONS = 6
"""About the number of transactions of a drop: the mark, the deletion of the log, and that of the entry."""


class StoreRecreation(ReplicaRecreation):
    """See the module's docstring."""

    KIND = "store"

    # Nodes.

    def hosted(self, server: DatabaseServer) -> Any:
        stores = cast("StoreServer", server).stores
        return None if stores is None or server.databases is None else stores.hosted.get(RECREATED)

    async def put(self, machine: ReplicatedStore, value: bytes) -> None:
        await machine.execute(StoreBatch([Put(value, b"1")]))

    async def values(self, machine: ReplicatedStore, *, leads: bool) -> tuple[bytes, ...]:
        page = await machine.scan(KeyRange.prefix(b""), level=LINEARIZABLE if leads else ANY)
        return tuple(item.key for item in page.items)

    # Lives.

    async def make(self, client: Client) -> bytes:
        return (await create_store(client, RECREATED)).identity

    async def read(self, client: Client) -> tuple[str | None, dict[str, str]]:
        await client.metadata.tree.sync(own_paths.store_path(client.metadata.own_root, RECREATED))
        try:
            info = await read_store(client, RECREATED)
        except NoSuchStore:
            return None, {}
        return info.identity.hex(), {"dropping": str(info.is_dropping)}

    async def remove(self, client: Client) -> None:
        while (await self.read(client))[0] is not None:
            await drop_store(client, RECREATED)

    async def next_life(self, client: Client) -> NameHolder:
        await self.settled()
        await self.remove(client)
        life = await self.write((await self.make(client)).hex())
        return NameHolder(life.identity, life.acknowledged, properties={"dropping": "False"})

    # Operations that hang.

    def draw_operation(self) -> LateOperation:
        late = self.rng.choice(LATE_OPERATIONS)
        if late == "statement":
            return self.draw_statement()
        if late == "following":
            return self.draw_following(self._drop)
        moment = AtMetadata(self.rng.choice((0, 0, self.rng.randrange(DROP_TRANSACTIONS))), "multi")
        return LateOperation(self.LATE, moment, partial(self.on, self.LATE, self._drop))

    async def _drop(self, client: Client) -> None:
        await drop_store(client, RECREATED)
