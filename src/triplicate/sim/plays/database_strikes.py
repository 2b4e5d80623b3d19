"""What befalls the leader of a database: the faults that are drawn for nodes by name rarely meet the one that leads."""

from __future__ import annotations

import asyncio

from triplicate.sim.plays.database_desk import Desk
from triplicate.sim.plays.database_nodes import DatabaseServer

SESSION_SHARE = 0.4
"""The metadata takes a node for dead after this share of the time in which it is not heard of."""


async def strike_leader(desk: Desk, kind: str, at_s: float, lasts_s: float) -> None:
    """Wait for the time, strike whoever leads then, and undo it when its time is over."""
    await asyncio.sleep(max(0.0, at_s - desk.stage.time()))
    leaders = desk.leaders()
    if not leaders:
        return
    await strike(desk, leaders[0], kind, lasts_s)


async def strike(desk: Desk, server: DatabaseServer, kind: str, lasts_s: float) -> None:
    """Strike one node.

    Raises:
        ValueError: nobody knows this kind.
    """
    desk.stage.strike(kind, node=server.name, leads=server.leads)
    match kind:
        case "pause":
            await _pause(server, lasts_s)
        case "cut_off":
            await _cut_off(server, lasts_s)
        case "kill" | "crash":
            server.crash(silent=lasts_s > 1.0, keep_unsynced=kind == "kill")
            await asyncio.sleep(lasts_s)
            await server.restart()
        case "stop":
            server.allowed.clear()
            await server.stop()
            await asyncio.sleep(lasts_s)
            await server.restart()
        case "session_expired":
            server.expire_session()
        case _:
            raise ValueError(f"no strike {kind!r} is known")


async def _pause(server: DatabaseServer, lasts_s: float) -> None:
    """Hold the process still, mostly for longer than its session lasts: others go on without it, and it does not know."""
    host = server.host
    if host is None:
        return
    host.pause()
    await asyncio.sleep(lasts_s * SESSION_SHARE)
    if lasts_s > 1.0 and server.host is host:
        server.expire_session()
    await asyncio.sleep(lasts_s * (1 - SESSION_SHARE))
    host.resume()


async def _cut_off(server: DatabaseServer, lasts_s: float) -> None:
    """Cut the process off from the metadata, but neither from the bookies nor from its clients."""
    host = server.host
    tree = server.tree
    if tree is None:
        return
    tree.reachable.clear()
    await asyncio.sleep(lasts_s * SESSION_SHARE)
    if server.host is host and server.tree is tree:
        server.expire_session()
    await asyncio.sleep(lasts_s * (1 - SESSION_SHARE))
    tree.reachable.set()
