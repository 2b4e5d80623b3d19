"""The database workload: three nodes with one replicated database between them, or several, and clients of each."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import apsw

from triplicate.client import Client
from triplicate.config import NodeSettings
from triplicate.log import LogClientSettings, LogSettings
from triplicate.sql import LEASE_S, create_database, database_file
from triplicate_simulator.checkers.sql_rules import SQL_CHECKERS, CopyDiverged, FinalCopy, Row, journal_of
from triplicate_simulator.cluster.leftovers import find_unreferenced
from triplicate_simulator.cluster.run_context import PROGRESS_S, RunContext
from triplicate_simulator.workloads.sql.leader_faults import SnapshotLosses, run_leader_fault
from triplicate_simulator.workloads.sql.sql_audit import find_unsound_copies, find_unsound_snapshots
from triplicate_simulator.workloads.sql.sql_clients import clients_of, run_session
from triplicate_simulator.workloads.sql.sql_load import DatabaseLoad, draw_load, smaller_loads
from triplicate_simulator.workloads.sql.sql_model import COUNTED, ClientSession, SqlModel
from triplicate_simulator.workloads.sql.sql_nodes import DATABASE, CopyFolders, DatabaseReplica, DatabaseServer, FurtherReplica
from triplicate_simulator.workloads.sql.sql_operations import (
    ClientOperation,
    create_tables,
    observe_copy,
    send_request,
    waste_tickets,
    write_register,
)
from triplicate_simulator.workloads.workload import Workload

CREATOR = "creator"
AUDITOR = "auditor"
FINAL_PATIENCE_S = 10.0
MERGE_AFTER_S = 2.0
"""Age at which closed segments are merged with their neighbours by a janitor."""


def node_settings(load: DatabaseLoad) -> NodeSettings:
    """Settings with which nothing takes longer than a short run, with the load's limits."""
    return NodeSettings(
        writer_wait_s=3.0,
        transaction_idle_s=1.5,
        transaction_limit_s=8.0,
        retry_longest_s=load.retry_longest_s,
        request_keep_s=load.request_keep_s,
        request_limit=load.request_limit,
        read_idle_s=load.read_idle_s,
        snapshot_limit_s=load.snapshot_limit_s,
        snapshot_log_bytes=load.snapshot_log_bytes,
        snapshot_interval_s=load.snapshot_interval_s,
        snapshot_keep_log_s=load.snapshot_keep_log_s,
        snapshot_turn_s=load.snapshot_turn_s,
        snapshot_rate_bytes_per_s=0,
    )


def log_settings(load: DatabaseLoad) -> LogClientSettings:
    """Settings with which a node uses logs."""
    return LogClientSettings(owner_grace_s=0.5, janitor_interval_s=load.janitor_interval_s, merge_after_s=MERGE_AFTER_S)


BACKGROUND_WORK = {
    "snapshots_made": "replica.snapshot",
    "snapshots_loaded": "replica.snapshot_loaded",
    "snapshots_found_lost": "replica.snapshot_damaged",
    "log_truncations": "replica.log_truncated",
    "janitor_rounds": "log.janitor_round",
    "segments_merged": "log.rewritten",
    "peers_found_silent": "replica.peer_silent",
}
"""Background work of nodes, and the fact that records it."""
RARE_WORK = ("segments_merged", "ids_forgotten")
"""Work that a hundred seeds may not have: a merge needs many small segments that no snapshot removes, and a janitor; the id of a
transaction is kept longer than most runs last."""


class SqlWorkload(Workload):
    """Clients change and read databases while the nodes come and go."""

    name = "databases"
    load_type = DatabaseLoad
    checkers = SQL_CHECKERS
    rooms = ("client", "log", "replica", "sql")
    counted: ClassVar[tuple[str, ...]] = tuple(name for name in (*COUNTED, "leaderships", *BACKGROUND_WORK) if name not in RARE_WORK)

    def __init__(self, stage: RunContext, load: DatabaseLoad) -> None:
        super().__init__(stage, load)
        self.copies = CopyFolders()
        names = [f"node-{number + 1}" for number in range(load.nodes)]
        settings = node_settings(load), log_settings(load)
        self.servers = {name: DatabaseServer(stage.cluster, name, self.copies, *settings) for name in names}
        stage.cluster.others.update(self.servers)
        self.desk = SqlModel(stage, load, self.servers)
        """The model of the first database."""
        self.desks = [self.desk, *(self._further(f"{DATABASE}{number}") for number in range(2, load.databases + 1))]
        self._keepers: list[asyncio.Task[None]] = []
        self._strikes: list[asyncio.Task[None]] = []
        self._clients: list[asyncio.Task[None]] = []
        self._thief = SnapshotLosses(self.desk)

    @classmethod
    def draw(cls, chance: random.Random) -> DatabaseLoad:
        return draw_load(chance)

    @classmethod
    def clients(cls, load: DatabaseLoad) -> tuple[str, ...]:
        return tuple(f"node-{number + 1}" for number in range(load.nodes))

    @classmethod
    def smaller(cls, load: DatabaseLoad) -> Iterator[DatabaseLoad]:
        return smaller_loads(load)

    async def begin(self) -> None:
        loop = self.stage.world.loop
        for desk in self.desks:
            await self.stage.cluster.client(CREATOR).run(partial(self._create, desk.database))
        self._keepers = [loop.begin(server.keep(), name=f"keeper of {server.name}") for server in self.servers.values()]
        chance = self.stage.chance("preparation")
        for desk in self.desks:
            await self._insist(desk, "preparation", chance, create_tables)
        began_s = self.stage.time()
        for desk in self.desks:
            for client in clients_of(desk):
                self._clients.append(loop.begin(client.run(), name=client.name))
        for kind, at_s, lasts_s in self.load.leader_strikes:
            self._strikes.append(loop.begin(run_leader_fault(self.desk, kind, began_s + at_s, lasts_s), name=f"{kind} of the leader"))
        self._strikes.append(loop.begin(self._thief.run(self.load.snapshot_losses), name="losses of snapshots"))

    def _further(self, database: str) -> SqlModel:
        return SqlModel(self.stage, self.load, {name: FurtherReplica(server, database) for name, server in self.servers.items()}, database)

    async def _create(self, database: str, client: Client) -> None:
        settings = LogSettings(roll_size_bytes=self.load.roll_size_bytes, roll_age_s=self.load.roll_age_s)
        lease_s = self.load.lease_s if self.load.lease_s >= 0.0 else self.stage.chance("lease").choice((0.0, LEASE_S))
        await create_database(client, database, settings, lease_s=lease_s)

    async def _insist(
        self, desk: SqlModel, name: str, chance: random.Random, work: ClientOperation, seat: DatabaseReplica | None = None
    ) -> None:
        """Do some work, at a leader unless a node is given, with as many attempts as needed."""
        while True:
            places = desk.leaders() if seat is None else [seat]
            if places and await run_session(desk, name, chance.choice(places), chance, work, FINAL_PATIENCE_S):
                return
            await asyncio.sleep(0.1)

    # The end.

    async def finish(self) -> None:
        stage, loop = self.stage, self.stage.world.loop
        for strike in self._strikes:
            await strike
        await stage.by_deadline(self._clients)
        if self.load.snapshot_log_bytes:
            # The last copy must be built from the remaining snapshots and log.
            last = self.servers[stage.chance("last copy").choice(list(self.servers))]
            last.crash()
            await last.restart()
        what = "the last write, the open questions, the last copy"
        await stage.by_deadline([loop.begin(self._settle(desk), name=f"{what} of {desk.database}") for desk in self.desks])
        for fact in stage.world.recorder.facts:
            if fact.kind == "replica.diverged":
                facts = dict(fact.facts)
                desk = next(desk for desk in self.desks if str(facts["log"]).startswith(f"database.{desk.database}."))
                desk.note(CopyDiverged(fact.time_s, fact.node, str(facts["reason"])), fact.node)
        stage.problems += find_unsound_copies(stage.world.recorder.facts, stage.deadline_s - PROGRESS_S, self._thief.lost)
        for server in self.servers.values():
            await server.retire()
        await stage.by_deadline(self._keepers)
        await stage.by_deadline([stage.keep(AUDITOR, self._audit)])
        left = len(self.copies.connections())
        if left:
            stage.problems.append(f"leak: {left} connections to copies are open")
        for desk in self.desks:
            for seat in desk.servers.values():
                self._read_copy(desk, seat.server)
            held = list(desk.history.of(FinalCopy))
            if held:
                desk.settle(journal_of(held[0]))
        self.copies.remove()

    async def _audit(self, client: Client) -> None:
        """Check that the databases' logs have no leftovers, and that every listed snapshot can be loaded."""
        self.stage.problems += [f"left over: {what}" for what in await find_unreferenced(client, LogClientSettings())]
        self.stage.problems += await find_unsound_snapshots(client, LogClientSettings(), self._thief.lost)

    async def _settle(self, desk: SqlModel) -> None:
        chance = self.stage.chance("settlement") if desk is self.desk else self.stage.chance("settlement", desk.database)
        await self._insist(desk, "settlement", chance, write_register)
        while desk.requests:
            await self._insist(desk, "settlement", chance, partial(send_request, request=desk.requests[0]))
            desk.requests.popleft()
        while desk.unresolved:
            for token in list(desk.unresolved):
                await self._insist(desk, "settlement", chance, partial(ClientSession.resolve, token=token))
            await asyncio.sleep(0.1)
        # The last ticket shows whether counters are equal on all nodes: any later one would correct them.
        await self._insist(desk, "settlement", chance, waste_tickets)
        while True:
            positions = [None if seat.database is None else seat.database.position for seat in desk.servers.values()]
            if None not in positions and len(dict.fromkeys(positions)) == 1:
                break
            await asyncio.sleep(0.05)
        for seat in desk.servers.values():
            await self._insist(desk, "settlement", chance, observe_copy, seat)

    def _read_copy(self, desk: SqlModel, server: DatabaseServer) -> None:
        path = database_file(server.folder, desk.database)
        if not path.exists():
            self.stage.problems.append(f"{server.name} has no copy of {desk.database}")
            return
        connection = apsw.Connection(str(path))
        try:
            copy = read_copy(server.name, connection)
        finally:
            connection.close(True)
        desk.history.add(copy)

    def counts(self) -> dict[str, int]:
        facts = self.stage.world.recorder.facts
        leaderships = sum(fact.kind == "replica.role" and ("role", "leader") in fact.facts for fact in facts)
        counts = {name: sum(desk.counts[name] for desk in self.desks) for name in self.desk.counts}
        done = {name: self.stage.world.recorder.counts.get(kind, 0) for name, kind in BACKGROUND_WORK.items()}
        return {**counts, **done, "leaderships": leaderships, "databases": len(self.desks)}


def read_copy(node: str, connection: apsw.Connection) -> FinalCopy:
    """The contents of a copy's file."""
    tables: dict[str, list[Row]] = {
        "schema": connection.execute("select type, name, tbl_name, sql from sqlite_schema order by type, name").fetchall(),
        "check": connection.execute("pragma quick_check").fetchall(),
    }
    for _, name, _, sql in [row for row in tables["schema"] if row[0] == "table"]:
        columns = "*"
        if "without rowid" not in str(sql).lower() and not str(sql).lower().startswith("create virtual"):
            columns = "rowid, *"
        if name == "triplicate_state":
            # The epoch also changes with entries that start one and change nothing, which a copy may not have applied yet.
            columns = "position, batch, schema_version, pruned_through, diverged"
        if name == "sqlite_sequence":
            columns = "name, seq"  # The order in which SQLite saw the tables does not matter.
        quoted = '"' + str(name).replace('"', '""') + '"'
        tables[str(name)] = connection.execute(f"select {columns} from {quoted} order by 1").fetchall()
    position = int(tables["triplicate_state"][0][0])
    return FinalCopy(node, position, tables)
