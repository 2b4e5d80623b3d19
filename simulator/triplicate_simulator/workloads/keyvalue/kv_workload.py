"""Clients change, read and watch a key-value store while its nodes come and go."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import ClassVar

from triplicate.client import Client
from triplicate.config import NodeSettings, StoreSettings
from triplicate.config.log_settings import LogSettings
from triplicate.kv import create_store
from triplicate.kv.storage.copy_folder import store_folder
from triplicate.kv.storage.rocks_copy import RocksCopy
from triplicate.log import LogClientSettings
from triplicate_simulator.checkers.history import Checker
from triplicate_simulator.checkers.recreation_rules import STORE_RECREATION
from triplicate_simulator.checkers.store_rules import STORE_CHECKERS, FinalStore, StoreDiverged
from triplicate_simulator.cluster.leftovers import find_unreferenced
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.workloads.keyvalue.kv_clients import WatchingClient, clients_of, write_last
from triplicate_simulator.workloads.keyvalue.kv_load import StoreLoad, draw_load, smaller_loads
from triplicate_simulator.workloads.keyvalue.kv_model import COUNTED, StoreModel
from triplicate_simulator.workloads.keyvalue.kv_nodes import STORE, StoreServer, copies_below
from triplicate_simulator.workloads.keyvalue.kv_placement_changes import run_store_change
from triplicate_simulator.workloads.keyvalue.kv_recreation import StoreRecreation
from triplicate_simulator.workloads.sql.leader_faults import run_leader_fault
from triplicate_simulator.workloads.sql.placement_changes import PlannedChange
from triplicate_simulator.workloads.sql.sql_nodes import CopyFolders
from triplicate_simulator.workloads.workload import Workload

CREATOR, AUDITOR = "store-creator", "store-auditor"
FINAL_PATIENCE_S = 5.0
POLL_S = 0.05
NEVER_DUE_S = 1e9
COPY_ENDS = ("node.copy_failed", "node.copy_given_up", "node.copy_not_set_aside")
"""No disk fault strikes the folder of copies, so nothing excuses these facts."""
WORK = {"snapshots_made": "replica.snapshot", "snapshots_loaded": "replica.snapshot_loaded", "log_truncations": "replica.log_truncated"}
"""Background work of nodes, and the fact that records it."""


def node_settings(load: StoreLoad) -> NodeSettings:
    return NodeSettings(
        election_delay_s=0.1,
        report_interval_s=0.5,
        retry_first_s=0.02,
        retry_longest_s=1.0,
        restart_first_s=0.1,
        restart_longest_s=1.0,
        peer_probe_interval_s=0.1,
        silent_leader_limit_s=1.0,
        snapshot_log_bytes=load.snapshot_log_bytes,
        snapshot_interval_s=2.0 if load.snapshot_log_bytes else NEVER_DUE_S,
        snapshot_turn_s=1.0,
        snapshot_rate_bytes_per_s=0,
    )


class StoreWorkload(Workload):
    """Clients change, read and watch a store while the nodes come and go."""

    name = "stores"
    load_type = StoreLoad
    checkers: ClassVar[dict[str, Checker]] = {**STORE_CHECKERS, **STORE_RECREATION}
    rooms = ("client", "log", "replica", "kv")
    counted: ClassVar[tuple[str, ...]] = (*COUNTED, "held_across", "recreated", "leaderships", *WORK)

    def __init__(self, context: RunContext, load: StoreLoad) -> None:
        super().__init__(context, load)
        self.copies = CopyFolders()
        log_settings = LogClientSettings(owner_grace_s=0.5, janitor_interval_s=600.0)
        store_settings = StoreSettings(watch_buffer_bytes=load.watch_buffer_bytes)
        self.servers = {
            name: StoreServer(context.cluster, name, self.copies, node_settings(load), log_settings, store_settings)
            for name in self.clients(load)
        }
        context.cluster.others.update(self.servers)
        self.model = StoreModel(context, load, self.servers)
        self._keepers: list[asyncio.Task[None]] = []
        self._strikes: list[asyncio.Task[None]] = []
        self._clients = clients_of(self.model)
        self._tasks: list[asyncio.Task[None]] = []
        self._identity = b""
        self._recreation = StoreRecreation(context, self.servers)

    @classmethod
    def draw(cls, rng: random.Random) -> StoreLoad:
        return draw_load(rng)

    @classmethod
    def clients(cls, load: StoreLoad) -> tuple[str, ...]:
        return tuple(f"node-{number + 1}" for number in range(load.nodes))

    @classmethod
    def smaller(cls, load: StoreLoad) -> Iterator[StoreLoad]:
        return smaller_loads(load)

    async def begin(self) -> None:
        loop = self.context.world.loop
        await self.context.cluster.client(CREATOR).run(self._create)
        self._keepers = [loop.start_task(server.keep_running(), name=f"keeper of {server.name}") for server in self.servers.values()]
        await write_last(self.model, self.context.rng("preparation"), FINAL_PATIENCE_S)
        began_s = self.context.time()
        self._tasks = [loop.start_task(client.run(), name=client.name) for client in self._clients]
        for kind, at_s, lasts_s in self.load.leader_strikes:
            self._strikes.append(loop.start_task(run_leader_fault(self.model, kind, began_s + at_s, lasts_s), name=f"{kind} of the leader"))
        for number, (kind, at_s, lasts_s) in enumerate(self.load.placement_changes):
            change = PlannedChange(number, kind, began_s + at_s, lasts_s)
            self._strikes.append(loop.start_task(run_store_change(self.model, change), name=kind))
        self._tasks.append(loop.start_task(self._recreation.run(self.load.recreations), name="recreation"))

    async def _create(self, client: Client) -> None:
        settings = LogSettings(roll_size_bytes=self.load.roll_size_bytes)
        self._identity = (await create_store(client, STORE, settings, lease_s=self.load.lease_s)).identity

    async def finish(self) -> None:
        context, loop = self.context, self.context.world.loop
        for strike in self._strikes:
            await strike
        await context.finish_by_deadline(self._tasks)
        for client in self._clients:
            if isinstance(client, WatchingClient):
                client.end()
        if self.load.snapshot_log_bytes:
            # The last copy must be built from the remaining snapshots and log.
            last = self.servers[context.rng("last copy").choice(list(self.servers))]
            last.crash()
            await last.restart()
        await context.finish_by_deadline([loop.start_task(self._settle(), name="the last write, the last copy")])
        for fact in context.world.recorder.facts:
            if fact.kind == "replica.diverged":
                self.model.note(StoreDiverged(fact.time_s, fact.node, str(dict(fact.facts)["reason"])), fact.node)
            elif fact.kind in COPY_ENDS:
                context.problems.append(f"copy: {fact}")
        for server in self.servers.values():
            await server.retire()
        await context.finish_by_deadline(self._keepers)
        await context.finish_by_deadline([context.keep_running(AUDITOR, self._audit)])
        left = len(copies_below(self.copies.folder))
        if left:
            context.problems.append(f"leak: {left} copies are open")
        for server in self.servers.values():
            self._read_copy(server)
        self.copies.remove()

    async def _audit(self, client: Client) -> None:
        """Check that the store's log has no leftovers."""
        self.context.problems += [f"left over: {what}" for what in await find_unreferenced(client, LogClientSettings())]

    async def _settle(self) -> None:
        """Make a last change, and wait until every copy has it and no expired key is left."""
        rng = self.context.rng("settlement")
        while True:
            position = await write_last(self.model, rng, FINAL_PATIENCE_S)
            await asyncio.sleep(8.0)  # All deadlines have passed, and their keys are deleted, if the clocks agree.
            stores = [server.store for server in self.servers.values()]
            if all(store is not None and store.unusable is None and store.position >= position for store in stores) and (
                len({store.position for store in stores if store is not None}) == 1
            ):
                return
            await asyncio.sleep(POLL_S)

    def _read_copy(self, server: StoreServer) -> None:
        copy = RocksCopy(store_folder(str(server.folder), STORE), self._identity)
        state = copy.state
        items = [
            (item.key.decode(), item.record.value.decode(), item.record.version, item.record.deadline_ms) for item in copy.moment().items
        ]
        deadlines = [(due.deadline_ms, due.key.decode()) for due in copy.due(1 << 62, 1_000_000)]
        copy.close()
        self.context.history.add(FinalStore(server.name, (state.position, state.number, state.time_ms, state.keys), items, deadlines))

    def counts(self) -> dict[str, int]:
        facts = self.context.world.recorder.facts
        leaderships = sum(fact.kind == "replica.role" and ("role", "leader") in fact.facts for fact in facts)
        work = {name: self.context.world.recorder.counts.get(kind, 0) for name, kind in WORK.items()}
        return {**self.model.counts, **self._recreation.counts, **work, "leaderships": leaderships}
