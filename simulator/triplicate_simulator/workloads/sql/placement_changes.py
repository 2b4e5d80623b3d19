"""Changes of placement by an operator while clients use the databases: moves of leaders, and drains of nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from triplicate.client import Client
from triplicate.errors import TriplicateError
from triplicate.sql import EVERYWHERE, alter_placement, choose_leader, database_names, drain_node, move_leader, undrain_node
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.workloads.sql.sql_load import MOVE_LEADER
from triplicate_simulator.workloads.sql.sql_model import SqlModel

OPERATOR = "operator"
MOVE_LIMIT_S = 10.0
RETRY_S = 0.2


@dataclass(frozen=True)
class PlannedChange:
    """A change of placement that an operator makes.

    Args:
        at_s: when it begins. lasts_s: how long a drain lasts.
    """

    number: int
    kind: str
    at_s: float
    lasts_s: float


async def run_change(models: Sequence[SqlModel], change: PlannedChange) -> None:
    """Change the placement of the node that leads the first database."""
    model = models[0]
    await change_leading_node(model.context, change, lambda: [one.server.name for one in model.leaders()], partial(_move, model.database))


async def change_leading_node(
    context: RunContext, change: PlannedChange, leaders: Callable[[], Sequence[str]], move: Callable[[Client], Awaitable[None]]
) -> None:
    """Wait for the time, and change the placement of the node that leads then.

    Args:
        leaders: the nodes that consider themselves leader, the latest first. move: asks for a move of the leader.
    """
    await asyncio.sleep(max(0.0, change.at_s - context.time()))
    node = next(iter(leaders()), None)
    if node is None:
        return
    context.record_fault(change.kind, node=node)
    operator = f"{OPERATOR}-{change.number}"
    if change.kind == MOVE_LEADER:
        await context.keep_running(operator, move)
        return
    await context.keep_running(operator, partial(drain, node))
    await asyncio.sleep(change.lasts_s)
    await context.keep_running(operator, partial(undrain, node))


async def _move(database: str, client: Client) -> None:
    """Ask for one move. It may be refused, or not take place in time."""
    try:
        await move_leader(client, database, await choose_leader(client, database, ""), MOVE_LIMIT_S)
    except TriplicateError as error:
        client.host.trace("operator.not_moved", database=database, error=repr(error))


async def drain(node: str, client: Client) -> None:
    """Ask for one drain. It may be refused."""
    try:
        await drain_node(client, node)
    except TriplicateError as error:
        client.host.trace("operator.not_drained", node=node, error=repr(error))


async def undrain(node: str, client: Client) -> None:
    """End a drain, as often as it takes."""
    while True:
        try:
            await undrain_node(client, node)
        except TriplicateError:
            await asyncio.sleep(RETRY_S)
        else:
            return


async def place_everywhere(client: Client) -> None:
    """Give every node a copy of every database again, so that all copies can be compared."""
    while True:
        try:
            for name in await database_names(client):
                await alter_placement(client, name, lambda _: EVERYWHERE)
        except TriplicateError:
            await asyncio.sleep(RETRY_S)
        else:
            return
