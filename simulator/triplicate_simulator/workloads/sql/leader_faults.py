"""Faults of the leader of a database: faults that are drawn for nodes by name rarely strike it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from triplicate.client import Client
from triplicate.errors import TriplicateError
from triplicate.log import LogClientSettings, Logs
from triplicate.sim.host import NodeDied
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.workloads.sql.sql_model import SqlModel
from triplicate_simulator.workloads.sql.sql_nodes import DatabaseReplica, DatabaseServer

MOMENT_S = (0.0002, 0.004)
"""Delay of a fault "after" a point."""
LULL_SHARE, LULL_S = 0.6, 2.5
LULL_BEFORE_S = 0.4
"""Writes in flight at the start of the lull are done after this time."""
WAIT_POINT_S = 6.0
"""Without a visit of the fault point within this time there is no fault."""
SUCCESSION_S = 5.0
"""Longest wait for another leader."""
WRITTEN_S = (0.05, 0.3, 1.0)
"""Times for which another node leads before one comes back that does not know it."""
SESSION_SHARE = 0.4
"""The metadata considers a node dead after this share of the time for which it is silent."""
LATE_S, EXPIRY_S = (0.4, 0.9), (0.0, 0.1)
"""Time that answers wait on their way, less than the time limit of an append. End of the session that has no answers either, after the
beginning."""
THEFT_S, LOOK_S = (8.0, 20.0), 1.0
"""Time until the newest snapshot is deleted, from the beginning or from the deletion before; interval of checks for two snapshots."""
SNAPSHOT_DELETER = "thief"


class LedModel(Protocol):
    """The part of a model that faults of its leader use."""

    context: RunContext
    lull_until_s: float
    """Clients start no changes before this time."""

    @property
    def servers(self) -> Mapping[str, DatabaseReplica]: ...

    def leaders(self) -> Sequence[DatabaseReplica]: ...


async def run_leader_fault(model: LedModel, kind: str, at_s: float, lasts_s: float) -> None:
    """Wait for the time, strike the node that leads then, and undo the fault when its time is over.

    Args:
        kind: one of `LEADER_FAULTS`, or one of `LEADER_FAULTS_AT` and a fault point, at or after which to strike the first node that
            reaches it.
    """
    await asyncio.sleep(max(0.0, at_s - model.context.time()))
    name, *place = kind.split()
    if place:
        when, point = place
        delay_s = model.context.rng("moment", kind, at_s).uniform(*MOMENT_S) if when == "after" else 0.0
        await _run_fault_at(model, name, point, delay_s, lasts_s)
        return
    leaders = model.leaders()
    if leaders:
        await run_server_fault(model, leaders[0].server, name, lasts_s)


async def _run_fault_at(model: LedModel, kind: str, point: str, delay_s: float, lasts_s: float) -> None:
    """Strike the first node that reaches a point, right there or a moment later. No effect if none does in time."""
    met: list[DatabaseServer] = []
    reached = asyncio.Event()

    def act() -> None:
        (server,) = met
        if server.host is not None and server.host.alive:
            model.context.record_fault(kind, node=server.name, point=point)
            if kind == "pause":
                server.host.pause()
            elif kind == "mute":
                _block_bookies(model, server, blocked=True)
            else:
                server.crash(silent=lasts_s > 1.0, keep_unsynced=kind == "kill")
        reached.set()

    def on_reached(node: str) -> None:
        met.append(model.servers[node].server)
        if delay_s:
            model.context.world.loop.call_later(delay_s, act)
        else:
            act()

    trap = model.context.world.points.trap(point, on_reached)
    try:
        async with asyncio.timeout(WAIT_POINT_S):
            await reached.wait()
    except TimeoutError:
        trap.cancel()
        if not met:
            return
        await reached.wait()
    if kind == "pause":
        await _pause_past_session(model, met[0], lasts_s)
    elif kind == "mute":
        await _mute_past_session(model, met[0], lasts_s)
    else:
        await asyncio.sleep(lasts_s)
        await met[0].restart()


async def run_server_fault(model: LedModel, server: DatabaseServer, kind: str, lasts_s: float) -> None:
    """Strike one node.

    Raises:
        ValueError: the kind is unknown.
    """
    if kind != "late_answers":
        model.context.record_fault(kind, node=server.name, leads=server.leads)
    match kind:
        case "pause":
            assert server.host is not None, "it leads"
            server.host.pause()
            await _pause_past_session(model, server, lasts_s)
        case "hang":
            await _hang(server, lasts_s)
        case "cut_off":
            await _cut_off(model, server, lasts_s)
        case "late_answers":
            await _answer_late(model, server, lasts_s)
        case "kill" | "crash":
            server.crash(silent=lasts_s > 1.0, keep_unsynced=kind == "kill")
            await asyncio.sleep(lasts_s)
            await server.restart()
        case "stop":
            server.allowed.clear()
            await server.stop()
            await asyncio.sleep(lasts_s)
            await server.restart()
        case "hand_over":
            await _replace_in_order(model, server, lasts_s)
        case "session_expired":
            server.expire_session()
        case _:
            raise ValueError(f"no fault {kind!r} is known")


async def _pause_past_session(model: LedModel, server: DatabaseServer, lasts_s: float) -> None:
    """Keep a paused process paused, mostly for longer than its session lasts: others continue without it, and it does not know."""
    host = server.host
    assert host is not None, "it was paused"
    await asyncio.sleep(lasts_s * SESSION_SHARE)
    if lasts_s > 1.0 and server.host is host:
        await _expire_session(model, server)
    await asyncio.sleep(lasts_s * (1 - SESSION_SHARE))
    host.resume()


def _block_bookies(model: LedModel, server: DatabaseServer, *, blocked: bool) -> None:
    """Block what a node sends to the bookies, or let it through again."""
    network = model.context.world.network
    for bookie in model.context.cluster.bookies:
        if blocked:
            network.block(server.name, bookie)
        else:
            network.unblock(server.name, bookie)


async def _mute_past_session(model: LedModel, server: DatabaseServer, lasts_s: float) -> None:
    """Keep a node whose groups do not reach the bookies so until its session has ended: others continue without them.

    It gets the answers to what it has sent before, and its clients reach it.
    """
    host = server.host
    await asyncio.sleep(lasts_s * SESSION_SHARE)
    if server.host is host:
        server.expire_session()
    await asyncio.sleep(lasts_s * (1 - SESSION_SHARE))
    _block_bookies(model, server, blocked=False)


async def _hang(server: DatabaseServer, lasts_s: float) -> None:
    """Pause a process whose session continues: only its silence shows."""
    host = server.host
    assert host is not None, "it leads"
    host.pause()
    await asyncio.sleep(lasts_s)
    host.resume()


async def _cut_off(model: LedModel, server: DatabaseServer, lasts_s: float) -> None:
    """Cut the process off from the metadata, but neither from the bookies nor from its clients."""
    host, reachable = server.host, server.reachable
    reachable.clear()
    await asyncio.sleep(lasts_s * SESSION_SHARE)
    if server.host is host:
        await _expire_session(model, server)
    await asyncio.sleep(lasts_s * (1 - SESSION_SHARE))
    reachable.set()


async def _answer_late(model: LedModel, server: DatabaseServer, lasts_s: float) -> None:
    """Congest the way to the process: answers of bookies arrive late, those of the metadata too late for its session.

    The congestion begins while an append is on its way. Packets of the process itself arrive, and its clients reach it.
    """
    host, reachable, reached = server.host, server.reachable, asyncio.Event()
    network, bookies = model.context.world.network, list(model.context.cluster.bookies)
    rng = model.context.rng("late answers", model.context.time())
    late_s = rng.uniform(*LATE_S)

    def begin(_: str) -> None:
        model.context.record_fault("late_answers", node=server.name, late_s=late_s)
        reachable.clear()
        for bookie in bookies:
            network.slow(bookie, server.name, 1.0, more_s=late_s)
        reached.set()

    trap = model.context.world.points.trap("sql.append", begin, node=server.name)
    try:
        async with asyncio.timeout(WAIT_POINT_S):
            await reached.wait()
    except TimeoutError:
        trap.cancel()
        return
    await asyncio.sleep(rng.uniform(*EXPIRY_S))
    if server.host is host:
        server.expire_session()
    await asyncio.sleep(lasts_s)
    for bookie in bookies:
        network.slow(bookie, server.name, 1.0)
    reachable.set()


async def _replace_in_order(model: LedModel, server: DatabaseServer, lasts_s: float) -> None:
    """Stop the leader in order. Once another leads and has written, restart the third with a new session."""
    server.allowed.clear()
    await server.stop()
    until_s = model.context.time() + SUCCESSION_S
    while model.context.time() < until_s:
        leaders = model.leaders()
        if leaders and leaders[0].server is not server:
            await asyncio.sleep(model.context.rng("hand over", until_s).choice(WRITTEN_S))
            for replica in model.servers.values():
                if replica.server is not server and not replica.leads and replica.server.alive:
                    model.context.record_fault("kill", node=replica.server.name, leads=False)
                    replica.server.crash(keep_unsynced=True)
                    await replica.server.restart()
            break
        await asyncio.sleep(0.05)
    await asyncio.sleep(lasts_s)
    await server.restart()


async def _expire_session(model: LedModel, server: DatabaseServer) -> None:
    """Have the metadata declare a living node dead; often during a lull in writes, so that it learns of it late."""
    host = server.host
    if model.context.rng("lull", model.context.time()).random() < LULL_SHARE:
        model.lull_until_s = model.context.time() + LULL_S
        await asyncio.sleep(LULL_BEFORE_S)
    if server.host is host:
        server.expire_session()


class SnapshotLosses:
    """Deletes the ledger of a database's newest snapshot without the nodes' knowledge, and removes a copy at the same time.

    That copy must be rebuilt from the older snapshot, which is why the log is kept from the older of two on.
    """

    def __init__(self, model: SqlModel) -> None:
        self._model = model
        self.lost: set[str] = set()
        """Ids of the snapshots that may be gone."""

    async def run(self, times: int) -> None:
        """Delete `times` snapshots, each as soon as two good ones are listed, until the faults are over."""
        model, rng = self._model, self._model.context.rng(SNAPSHOT_DELETER)
        for _ in range(times):
            await asyncio.sleep(rng.uniform(*THEFT_S))
            is_deleted = False
            while not is_deleted and not model.context.faults_over.is_set():
                try:
                    is_deleted = await model.context.cluster.client(SNAPSHOT_DELETER).run(self._delete_newest)
                except (TriplicateError, NodeDied) as error:
                    model.context.count_unknown(error)
                await asyncio.sleep(0.0 if is_deleted else LOOK_S)
            followers = [replica.server for replica in model.servers.values() if not replica.leads and replica.server.alive]
            if is_deleted and followers:
                server = rng.choice(followers)
                model.context.record_fault("crash", node=server.name, leads=False)
                server.crash()
                await server.restart()

    async def _delete_newest(self, client: Client) -> bool:
        logs = Logs(client, LogClientSettings())
        (name,) = [name for name in await logs.names() if name.startswith(f"database.{self._model.database}.")]
        good = (await logs.snapshots(name).read(fresh=True)).good
        if len(good) < 2 or self.lost.intersection(snapshot.snapshot_id for snapshot in good):
            return False  # Of two listed snapshots one may be lost, but not both.
        self.lost.add(good[-1].snapshot_id)
        self._model.context.announce_fault("snapshot_lost", log=name, snapshot=good[-1].snapshot_id)
        await client.delete(good[-1].ledger_id)
        return True
