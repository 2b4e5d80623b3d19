"""Faults of the leader of a database: faults that are drawn for nodes by name rarely strike it."""

from __future__ import annotations

import asyncio

from triplicate.client import Client
from triplicate.errors import TriplicateError
from triplicate.log import LogClientSettings, Logs
from triplicate.sim.host import NodeDied
from triplicate_simulator.workloads.sql.sql_model import SqlModel
from triplicate_simulator.workloads.sql.sql_nodes import DatabaseServer

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
THEFT_S, LOOK_S = (8.0, 20.0), 1.0
"""Time until the newest snapshot is deleted, from the beginning or from the deletion before; interval of checks for two snapshots."""
SNAPSHOT_DELETER = "thief"


async def run_leader_fault(desk: SqlModel, kind: str, at_s: float, lasts_s: float) -> None:
    """Wait for the time, strike the node that leads then, and undo the fault when its time is over.

    Args:
        kind: one of `LEADER_FAULTS`, or one of `LEADER_FAULTS_AT` and a fault point, at or after which to strike the first node that
            reaches it.
    """
    await asyncio.sleep(max(0.0, at_s - desk.stage.time()))
    name, *place = kind.split()
    if place:
        when, point = place
        delay_s = desk.stage.chance("moment", kind, at_s).uniform(*MOMENT_S) if when == "after" else 0.0
        await _run_fault_at(desk, name, point, delay_s, lasts_s)
        return
    leaders = desk.leaders()
    if leaders:
        await run_server_fault(desk, leaders[0].server, name, lasts_s)


async def _run_fault_at(desk: SqlModel, kind: str, point: str, delay_s: float, lasts_s: float) -> None:
    """Strike the first node that reaches a point, right there or a moment later. No effect if none does in time."""
    met: list[DatabaseServer] = []
    came = asyncio.Event()

    def act() -> None:
        (server,) = met
        if server.host is not None and server.host.alive:
            desk.stage.strike(kind, node=server.name, point=point)
            if kind == "pause":
                server.host.pause()
            else:
                server.crash(silent=lasts_s > 1.0, keep_unsynced=kind == "kill")
        came.set()

    def come(node: str) -> None:
        met.append(desk.servers[node].server)
        if delay_s:
            desk.stage.world.loop.call_later(delay_s, act)
        else:
            act()

    trap = desk.stage.world.points.strike(point, come)
    try:
        async with asyncio.timeout(WAIT_POINT_S):
            await came.wait()
    except TimeoutError:
        trap.cancel()
        if not met:
            return
        await came.wait()
    if kind == "pause":
        await _pause_past_session(desk, met[0], lasts_s)
    else:
        await asyncio.sleep(lasts_s)
        await met[0].restart()


async def run_server_fault(desk: SqlModel, server: DatabaseServer, kind: str, lasts_s: float) -> None:
    """Strike one node.

    Raises:
        ValueError: the kind is unknown.
    """
    desk.stage.strike(kind, node=server.name, leads=server.leads)
    match kind:
        case "pause":
            assert server.host is not None, "it leads"
            server.host.pause()
            await _pause_past_session(desk, server, lasts_s)
        case "hang":
            await _hang(server, lasts_s)
        case "cut_off":
            await _cut_off(desk, server, lasts_s)
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
            await _hand_over(desk, server, lasts_s)
        case "session_expired":
            server.expire_session()
        case _:
            raise ValueError(f"no strike {kind!r} is known")


async def _pause_past_session(desk: SqlModel, server: DatabaseServer, lasts_s: float) -> None:
    """Keep a paused process paused, mostly for longer than its session lasts: others continue without it, and it does not know."""
    host = server.host
    assert host is not None, "it was paused"
    await asyncio.sleep(lasts_s * SESSION_SHARE)
    if lasts_s > 1.0 and server.host is host:
        await _expire_session(desk, server)
    await asyncio.sleep(lasts_s * (1 - SESSION_SHARE))
    host.resume()


async def _hang(server: DatabaseServer, lasts_s: float) -> None:
    """Pause a process whose session continues: only its silence shows."""
    host = server.host
    assert host is not None, "it leads"
    host.pause()
    await asyncio.sleep(lasts_s)
    host.resume()


async def _cut_off(desk: SqlModel, server: DatabaseServer, lasts_s: float) -> None:
    """Cut the process off from the metadata, but neither from the bookies nor from its clients."""
    host, reachable = server.host, server.reachable
    reachable.clear()
    await asyncio.sleep(lasts_s * SESSION_SHARE)
    if server.host is host:
        await _expire_session(desk, server)
    await asyncio.sleep(lasts_s * (1 - SESSION_SHARE))
    reachable.set()


async def _hand_over(desk: SqlModel, server: DatabaseServer, lasts_s: float) -> None:
    """Stop the leader in order. Once another leads and has written, restart the third with a new session."""
    server.allowed.clear()
    await server.stop()
    until_s = desk.stage.time() + SUCCESSION_S
    while desk.stage.time() < until_s:
        leaders = desk.leaders()
        if leaders and leaders[0].server is not server:
            await asyncio.sleep(desk.stage.chance("hand over", until_s).choice(WRITTEN_S))
            for seat in desk.servers.values():
                if seat.server is not server and not seat.leads and seat.server.alive:
                    desk.stage.strike("kill", node=seat.server.name, leads=False)
                    seat.server.crash(keep_unsynced=True)
                    await seat.server.restart()
            break
        await asyncio.sleep(0.05)
    await asyncio.sleep(lasts_s)
    await server.restart()


async def _expire_session(desk: SqlModel, server: DatabaseServer) -> None:
    """Have the metadata declare a living node dead; often during a lull in writes, so that it learns of it late."""
    host = server.host
    if desk.stage.chance("lull", desk.stage.time()).random() < LULL_SHARE:
        desk.lull_until_s = desk.stage.time() + LULL_S
        await asyncio.sleep(LULL_BEFORE_S)
    if server.host is host:
        server.expire_session()


class SnapshotLosses:
    """Deletes the ledger of a database's newest snapshot without the nodes' knowledge, and removes a copy at the same time.

    That copy must be rebuilt from the older snapshot, which is why the log is kept from the older of two on.
    """

    def __init__(self, desk: SqlModel) -> None:
        self._desk = desk
        self.lost: set[str] = set()
        """Ids of the snapshots that may be gone."""

    async def run(self, times: int) -> None:
        """Delete `times` snapshots, each as soon as two good ones are listed, until the faults are over."""
        desk, chance = self._desk, self._desk.stage.chance(SNAPSHOT_DELETER)
        for _ in range(times):
            await asyncio.sleep(chance.uniform(*THEFT_S))
            stolen = False
            while not stolen and not desk.stage.quiet.is_set():
                try:
                    stolen = await desk.stage.cluster.client(SNAPSHOT_DELETER).run(self._steal)
                except (TriplicateError, NodeDied) as error:
                    desk.stage.note_unknown(error)
                await asyncio.sleep(0.0 if stolen else LOOK_S)
            followers = [seat.server for seat in desk.servers.values() if not seat.leads and seat.server.alive]
            if stolen and followers:
                server = chance.choice(followers)
                desk.stage.strike("crash", node=server.name, leads=False)
                server.crash()
                await server.restart()

    async def _steal(self, client: Client) -> bool:
        logs = Logs(client, LogClientSettings())
        (name,) = [name for name in await logs.names() if name.startswith(f"database.{self._desk.database}.")]
        good = (await logs.snapshots(name).read(fresh=True)).good
        if len(good) < 2 or self.lost.intersection(snapshot.snapshot_id for snapshot in good):
            return False  # Of two listed snapshots one may be lost, but not both.
        self.lost.add(good[-1].snapshot_id)
        self._desk.stage.announce("snapshot_lost", log=name, snapshot=good[-1].snapshot_id)
        await client.delete(good[-1].ledger_id)
        return True
