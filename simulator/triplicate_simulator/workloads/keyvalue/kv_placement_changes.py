"""Changes of placement by an operator while clients use the store: moves of its leader, and drains of nodes."""

from __future__ import annotations

import asyncio
from functools import partial

from triplicate.client import Client
from triplicate.errors import TriplicateError
from triplicate.kv import choose_store_leader, move_store_leader
from triplicate_simulator.workloads.keyvalue.kv_model import StoreModel
from triplicate_simulator.workloads.keyvalue.kv_nodes import STORE
from triplicate_simulator.workloads.sql.placement_changes import MOVE_LIMIT_S, OPERATOR, drain, undrain
from triplicate_simulator.workloads.sql.sql_load import MOVE_LEADER


async def run_store_change(model: StoreModel, number: int, kind: str, at_s: float, lasts_s: float) -> None:
    """Wait for the time, and change the placement of the node that leads the store then."""
    context = model.context
    await asyncio.sleep(max(0.0, at_s - context.time()))
    leaders = model.leaders()
    if not leaders:
        return
    node = leaders[0].server.name
    context.record_fault(kind, node=node)
    operator = f"{OPERATOR}-{number}"
    if kind == MOVE_LEADER:
        await context.keep_running(operator, _move)
        return
    await context.keep_running(operator, partial(drain, node))
    await asyncio.sleep(lasts_s)
    await context.keep_running(operator, partial(undrain, node))


async def _move(client: Client) -> None:
    """Ask for one move. It may be refused, or not take place in time."""
    try:
        await move_store_leader(client, STORE, await choose_store_leader(client, STORE), MOVE_LIMIT_S)
    except TriplicateError as error:
        client.host.trace("operator.not_moved", store=STORE, error=repr(error))
