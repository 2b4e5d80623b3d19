"""The database workload: three nodes with one replicated database between them, or several, and clients of each."""

from __future__ import annotations

import asyncio
import random
import weakref
from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import apsw

from triplicate.client import Client
from triplicate.config import NodeSettings
from triplicate.log import LogClientSettings, LogSettings
from triplicate.sql import LEASE_S, Placement, create_database, database_file
from triplicate.sql.core import batch_builder
from triplicate.sql.core.batch_builder import ENTRY_MARGIN_BYTES, MAX_ENTRY_BYTES
from triplicate.sql.executor import change_capture, staged_parts
from triplicate.sql.executor.spooled_changes import PIECE_BYTES
from triplicate.sql.executor.staged_parts import PART_BYTES
from triplicate_simulator.checkers.history import Checker
from triplicate_simulator.checkers.level_rules import LEVEL_CHECKERS
from triplicate_simulator.checkers.recreation_rules import DATABASE_RECREATION
from triplicate_simulator.checkers.sql_rules import SQL_CHECKERS, CopyDiverged, FinalCopy, Row, crowd_of, journal_of
from triplicate_simulator.cluster.leftovers import find_unreferenced
from triplicate_simulator.cluster.run_context import PROGRESS_S, RunContext
from triplicate_simulator.workloads.sql.leader_faults import SnapshotLosses, run_leader_fault
from triplicate_simulator.workloads.sql.level_clients import LevelReader
from triplicate_simulator.workloads.sql.placement_changes import OPERATOR, PlannedChange, place_everywhere, run_change
from triplicate_simulator.workloads.sql.sql_audit import count_window_faults, find_unsound_copies, find_unsound_snapshots
from triplicate_simulator.workloads.sql.sql_clients import clients_of, run_session
from triplicate_simulator.workloads.sql.sql_load import FURTHER_APPEND, DatabaseLoad, draw_load, smaller_loads
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
from triplicate_simulator.workloads.sql.sql_recreation import DatabaseRecreation
from triplicate_simulator.workloads.workload import Workload

CREATOR = "creator"
AUDITOR = "auditor"
FINAL_PATIENCE_S = 10.0
NEVER_DUE_S = 60.0
"""Interval between snapshots where none is made: nodes check ten times in an interval, and each check reads the metadata."""
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
        snapshot_interval_s=load.snapshot_interval_s if load.snapshot_log_bytes else NEVER_DUE_S,
        snapshot_keep_log_s=load.snapshot_keep_log_s,
        snapshot_turn_s=load.snapshot_turn_s,
        snapshot_rate_bytes_per_s=0,
        balance_interval_s=0.5 if load.is_placed else 0.0,
        balance_settle_s=3.0,
        handover_limit_s=1.0,
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
VISITED = {
    "further_groups": FURTHER_APPEND,
    "reads_interrupted": "sql.read_interrupted",
    "reads_in_threads": "sql.read_in_thread",
    "written_in_parts": "log.stage_own_batch",
}
"""Counts of visits, and their fault points."""
RARE_WORK = ("segments_merged", "ids_forgotten")
"""Work that a hundred seeds may not have: a merge needs many small segments that no snapshot removes, and a janitor; the id of a
transaction is kept longer than most runs last."""


class EntryLimits:
    """Sizes with which even small transactions are written in parts, as long as this object lives. One run at a time."""

    def __init__(self, piece_bytes: int) -> None:
        sizes = (PIECE_BYTES, PART_BYTES, MAX_ENTRY_BYTES)
        self._set(*((piece_bytes, piece_bytes, ENTRY_MARGIN_BYTES + piece_bytes) if piece_bytes else sizes))
        self._end = weakref.finalize(self, self._set, *sizes)

    @staticmethod
    def _set(piece: int, part: int, entry: int) -> None:
        for module, name, value in (
            (change_capture, "PIECE_BYTES", piece),
            (staged_parts, "PART_BYTES", part),
            (batch_builder, "MAX_ENTRY_BYTES", entry),
        ):
            setattr(module, name, value)


class SqlWorkload(Workload):
    """Clients change and read databases while the nodes come and go."""

    name = "databases"
    load_type = DatabaseLoad
    checkers: ClassVar[dict[str, Checker]] = {**SQL_CHECKERS, **LEVEL_CHECKERS, **DATABASE_RECREATION}
    rooms = ("client", "log", "replica", "sql")
    counted: ClassVar[tuple[str, ...]] = tuple(
        name
        for name in (*COUNTED, "held_across", "recreated", "leaderships", "window_faults", *BACKGROUND_WORK, *VISITED)
        if name not in RARE_WORK
    )

    def __init__(self, context: RunContext, load: DatabaseLoad) -> None:
        super().__init__(context, load)
        self.limits = EntryLimits(load.piece_bytes)
        self.copies = CopyFolders()
        names = [f"node-{number + 1}" for number in range(load.nodes)]
        settings = node_settings(load), log_settings(load)
        self.servers = {name: DatabaseServer(context.cluster, name, self.copies, *settings) for name in names}
        context.cluster.others.update(self.servers)
        self.model = SqlModel(context, load, self.servers)
        """The model of the first database."""
        self.models = [self.model, *(self._further_model(f"{DATABASE}{number}") for number in range(2, load.databases + 1))]
        self._keepers: list[asyncio.Task[None]] = []
        self._strikes: list[asyncio.Task[None]] = []
        self._clients: list[asyncio.Task[None]] = []
        self._snapshot_losses = SnapshotLosses(self.model)
        self._recreation = DatabaseRecreation(context, self.servers)
        self._recreating: list[asyncio.Task[None]] = []

    @classmethod
    def draw(cls, rng: random.Random) -> DatabaseLoad:
        return draw_load(rng)

    @classmethod
    def clients(cls, load: DatabaseLoad) -> tuple[str, ...]:
        return tuple(f"node-{number + 1}" for number in range(load.nodes))

    @classmethod
    def smaller(cls, load: DatabaseLoad) -> Iterator[DatabaseLoad]:
        return smaller_loads(load)

    async def begin(self) -> None:
        loop = self.context.world.loop
        for model in self.models:
            await self.context.cluster.client(CREATOR).run(partial(self._create, model.database))
        self._keepers = [loop.start_task(server.keep_running(), name=f"keeper of {server.name}") for server in self.servers.values()]
        rng = self.context.rng("preparation")
        for model in self.models:
            await self._retry_until_done(model, "preparation", rng, create_tables)
        began_s = self.context.time()
        for model in self.models:
            readers = range(self.load.level_readers) if model is self.model else ()
            for client in [*clients_of(model), *(LevelReader(model, f"leveller-{number + 1}") for number in readers)]:
                self._clients.append(loop.start_task(client.run(), name=client.name))
        for kind, at_s, lasts_s in self.load.leader_strikes:
            self._strikes.append(loop.start_task(run_leader_fault(self.model, kind, began_s + at_s, lasts_s), name=f"{kind} of the leader"))
        for number, change in enumerate(self.load.placement_changes):
            kind, at_s, lasts_s = change
            work = run_change(self.models, PlannedChange(number, kind, began_s + at_s, lasts_s))
            self._strikes.append(loop.start_task(work, name=f"{kind} by the operator"))
        self._strikes.append(loop.start_task(self._snapshot_losses.run(self.load.snapshot_losses), name="losses of snapshots"))
        self._recreating.append(loop.start_task(self._recreation.run(self.load.recreations), name="recreation"))

    def _further_model(self, database: str) -> SqlModel:
        return SqlModel(
            self.context, self.load, {name: FurtherReplica(server, database) for name, server in self.servers.items()}, database
        )

    async def _create(self, database: str, client: Client) -> None:
        settings = LogSettings(roll_size_bytes=self.load.roll_size_bytes, roll_age_s=self.load.roll_age_s)
        lease_s = self.load.lease_s if self.load.lease_s >= 0.0 else self.context.rng("lease").choice((0.0, LEASE_S))
        await create_database(client, database, settings, lease_s=lease_s, placement=Placement(copies=self.load.copies or None))

    async def _retry_until_done(
        self, model: SqlModel, name: str, rng: random.Random, work: ClientOperation, replica: DatabaseReplica | None = None
    ) -> None:
        """Do some work, at a leader unless a node is given, with as many attempts as needed."""
        while True:
            places = model.leaders() if replica is None else [replica]
            if places and await run_session(model, name, rng.choice(places), rng, work, FINAL_PATIENCE_S):
                return
            await asyncio.sleep(0.1)

    # The end.

    async def finish(self) -> None:
        context, loop = self.context, self.context.world.loop
        for strike in self._strikes:
            await strike
        await context.finish_by_deadline([*self._clients, *self._recreating])
        if self.load.copies:
            await context.finish_by_deadline([context.keep_running(OPERATOR, place_everywhere)])
        if self.load.snapshot_log_bytes:
            # The last copy must be built from the remaining snapshots and log.
            last = self.servers[context.rng("last copy").choice(list(self.servers))]
            last.crash()
            await last.restart()
        what = "the last write, the open questions, the last copy"
        await context.finish_by_deadline(
            [loop.start_task(self._finish_database(model), name=f"{what} of {model.database}") for model in self.models]
        )
        for fact in context.world.recorder.facts:
            if fact.kind == "replica.diverged":
                facts = dict(fact.facts)
                of_log = [model for model in self.models if str(facts["log"]).startswith(f"database.{model.database}.")]
                for model in of_log:
                    model.note(CopyDiverged(fact.time_s, fact.node, str(facts["reason"])), fact.node)
                context.problems += [] if of_log else [f"copy: {fact}"]
        context.problems += find_unsound_copies(context.world.recorder.facts, context.deadline_s - PROGRESS_S, self._snapshot_losses.lost)
        for server in self.servers.values():
            await server.retire()
        await context.finish_by_deadline(self._keepers)
        await context.finish_by_deadline([context.keep_running(AUDITOR, self._audit)])
        left = len(self.copies.connections())
        if left:
            context.problems.append(f"leak: {left} connections to copies are open")
        for model in self.models:
            for replica in model.servers.values():
                self._read_copy(model, replica.server)
            held = list(model.history.of(FinalCopy))
            if held:
                model.resolve_operations(journal_of(held[0]), crowd_of(held[0]))
        self.copies.remove()

    async def _audit(self, client: Client) -> None:
        """Check that the databases' logs have no leftovers, and that every listed snapshot can be loaded."""
        self.context.problems += [f"left over: {what}" for what in await find_unreferenced(client, LogClientSettings())]
        self.context.problems += await find_unsound_snapshots(client, LogClientSettings(), self._snapshot_losses.lost)

    async def _finish_database(self, model: SqlModel) -> None:
        rng = self.context.rng("settlement") if model is self.model else self.context.rng("settlement", model.database)
        await self._retry_until_done(model, "settlement", rng, write_register)
        while model.requests:
            await self._retry_until_done(model, "settlement", rng, partial(send_request, request=model.requests[0]))
            model.requests.popleft()
        while model.unresolved:
            for token in list(model.unresolved):
                await self._retry_until_done(model, "settlement", rng, partial(ClientSession.resolve, token=token))
            await asyncio.sleep(0.1)
        # The last ticket shows whether counters are equal on all nodes: any later one would correct them.
        await self._retry_until_done(model, "settlement", rng, waste_tickets)
        while True:
            positions = [None if replica.database is None else replica.database.position for replica in model.servers.values()]
            if None not in positions and len(dict.fromkeys(positions)) == 1:
                break
            await asyncio.sleep(0.05)
        for replica in model.servers.values():
            await self._retry_until_done(model, "settlement", rng, observe_copy, replica)

    def _read_copy(self, model: SqlModel, server: DatabaseServer) -> None:
        path = database_file(server.folder, model.database)
        if not path.exists():
            self.context.problems.append(f"{server.name} has no copy of {model.database}")
            return
        connection = apsw.Connection(str(path))
        try:
            copy = read_copy(server.name, connection)
        finally:
            connection.close(True)
        model.history.add(copy)

    def counts(self) -> dict[str, int]:
        facts = self.context.world.recorder.facts
        leaderships = sum(fact.kind == "replica.role" and ("role", "leader") in fact.facts for fact in facts)
        counts = {name: sum(model.counts[name] for model in self.models) for name in self.model.counts} | self._recreation.counts
        done = {name: self.context.world.recorder.counts.get(kind, 0) for name, kind in BACKGROUND_WORK.items()}
        visits = {name: self.context.world.points.reached.get(point, 0) for name, point in VISITED.items()}
        faults = count_window_faults(facts)
        return {**counts, **done, **visits, "leaderships": leaderships, "window_faults": faults, "databases": len(self.models)}


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
