"""Moving the leader of a database to another node. The present leader is drained, and the other node is named in the election."""

from __future__ import annotations

from triplicate.client import Client
from triplicate.errors import FormatError, NodeExists, NoNode, SqlError, TriplicateError
from triplicate.metadata import Tree, own_paths
from triplicate.replica import Role, best_leader, candidate_of, encode_handover, leader_of, listed_nodes
from triplicate.runtime import deadline_after, shielded, sleep, timeout_at
from triplicate.sql.hosting.database_directory import database_info
from triplicate.sql.hosting.node_changes import no_such_node
from triplicate.sql.hosting.placement_changes import stored_databases

POLL_S = 0.05
WITHDRAW_LIMIT_S = 5.0


async def move_leader(client: Client, name: str, target: str, limit_s: float) -> None:
    """Have another node lead a database, and wait until it does. Sessions on the former leader end with 57P01.

    Args:
        limit_s: the request is withdrawn after this time. The present leader then goes on.

    Raises:
        SqlError: 3D000, no such database; 55006, its leader is being moved already; 55P03, the target does not lead in time.
    """
    tree, path = client.metadata.tree, own_paths.database_path(client.metadata.own_root, name)
    await _request(tree, path, name, target)
    try:
        async with timeout_at(deadline_after(client.host.clock, limit_s)):
            while not await _leads(tree, path, target):
                await sleep(client.host.clock, POLL_S)
    except TimeoutError:
        raise SqlError(
            "55P03",
            f"node {target} does not lead database {name} within {limit_s:g} s; the request is withdrawn",
            hint="A long statement runs on the leader, or the other copy is behind, see triplicate database show.",
        ) from None
    finally:
        await shielded(_withdraw(client, path))


async def _request(tree: Tree, path: str, name: str, target: str) -> None:
    try:
        await tree.create(f"{path}/handover", encode_handover(target), ephemeral=True)
    except NoNode:
        raise SqlError("3D000", f'database "{name}" does not exist', hint="triplicate database list shows those that do.") from None
    except NodeExists:
        raise SqlError("55006", f"the leader of database {name} is being moved already; try again later") from None


async def _leads(tree: Tree, path: str, target: str) -> bool:
    try:
        leader = await leader_of(tree, path)
    except FormatError:
        return False
    if leader is None or leader.node_id != target:
        return False
    candidate = await candidate_of(tree, path, target)
    return candidate is not None and candidate.role == Role.LEADER.value


async def _withdraw(client: Client, path: str) -> None:
    """Withdraw this session's request. When the metadata do not answer, it ends with the session."""
    tree, clock = client.metadata.tree, client.host.clock
    until_s = clock.monotonic() + WITHDRAW_LIMIT_S
    while True:
        try:
            async with timeout_at(until_s):
                stat = await tree.exists(f"{path}/handover")
                if stat is not None and stat.ephemeral_owner == tree.session_id:
                    await tree.delete(f"{path}/handover", stat.version)
                return
        except NoNode:
            return
        except (TriplicateError, TimeoutError) as error:
            client.host.trace("node.handover_not_withdrawn", path=path, error=repr(error))
            if clock.monotonic() >= until_s:
                return
            await sleep(clock, POLL_S)


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
