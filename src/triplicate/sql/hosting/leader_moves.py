"""Moving the leader of a database to another node."""

from __future__ import annotations

from triplicate.client import Client
from triplicate.errors import NodeExists, NoNode, SqlError
from triplicate.metadata import own_paths
from triplicate.replica import best_leader, hand_leader_over, listed_nodes
from triplicate.sql.hosting.database_directory import database_info
from triplicate.sql.hosting.node_changes import no_such_node
from triplicate.sql.hosting.placement_changes import stored_databases


async def move_leader(client: Client, name: str, target: str, limit_s: float) -> None:
    """Have another node lead a database, and wait until it does. Sessions on the former leader end with 57P01.

    Args:
        limit_s: the request is withdrawn after this time. The present leader then goes on.

    Raises:
        SqlError: 3D000, no such database; 55006, its leader is being moved already; 55P03, the target does not lead in time.
    """
    try:
        await hand_leader_over(client, own_paths.database_path(client.metadata.own_root, name), target, limit_s)
    except NoNode:
        raise SqlError("3D000", f'database "{name}" does not exist', hint="triplicate database list shows those that do.") from None
    except NodeExists:
        raise SqlError("55006", f"the leader of database {name} is being moved already; try again later") from None
    except TimeoutError:
        raise SqlError(
            "55P03",
            f"node {target} does not lead database {name} within {limit_s:g} s; the request is withdrawn",
            hint="A long statement runs on the leader, or the other copy is behind, see triplicate database show.",
        ) from None


async def choose_leader(client: Client, name: str, target: str) -> str:
    """The node to which the leader of a database can move: the one that is named, or the one with the least load.

    Args:
        target: empty for any node.

    Raises:
        SqlError: 3D000, no such database; 42704, no such node; 55000, the node cannot lead it, or no node leads it now.
    """
    info = await database_info(client, name)
    if info.leader is None:
        raise SqlError("55000", f"no node leads database {name} now", hint=f"triplicate database show {name} shows its copies.")
    nodes = await listed_nodes(client)
    if not target:
        databases = [one.placed for one in await stored_databases(client)]
        own = next((one for one in databases if one.name == name), None)
        chosen = best_leader(own, databases, [one.placed() for one in nodes]) if own is not None else ""
        if not chosen:
            raise SqlError("55000", f"no other node can lead database {name}", hint=f"triplicate database show {name} shows its copies.")
        return chosen
    found = next((one for one in nodes if one.name == target), None)
    if found is None:
        raise no_such_node(target, nodes)
    reason = ""
    if target in info.placement.readers:
        reason = "its copy is read-only"
    elif not info.placement.is_chosen(target):
        reason = "it was not chosen for a copy"
    elif found.entry.is_draining:
        reason = "it is draining"
    elif not any(one.node_id == target and one.serves for one in info.nodes):
        reason = "it has no copy that can be used now"
    if reason:
        raise SqlError("55000", f"node {target} cannot lead database {name}: {reason}")
    return target
