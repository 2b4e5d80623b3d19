"""Changes of placement by an operator while clients use the store: moves of its leader, and drains of nodes."""

from __future__ import annotations

from triplicate.client import Client
from triplicate.errors import TriplicateError
from triplicate.kv import choose_store_leader, move_store_leader
from triplicate_simulator.workloads.keyvalue.kv_model import StoreModel
from triplicate_simulator.workloads.keyvalue.kv_nodes import STORE
from triplicate_simulator.workloads.sql.placement_changes import MOVE_LIMIT_S, PlannedChange, change_leading_node


async def run_store_change(model: StoreModel, change: PlannedChange) -> None:
    """Change the placement of the node that leads the store."""
    await change_leading_node(model.context, change, lambda: [one.server.name for one in model.leaders()], _move)


async def _move(client: Client) -> None:
    """Ask for one move. It may be refused, or not take place in time."""
    try:
        await move_store_leader(client, STORE, await choose_store_leader(client, STORE), MOVE_LIMIT_S)
    except TriplicateError as error:
        client.host.trace("operator.not_moved", store=STORE, error=repr(error))
