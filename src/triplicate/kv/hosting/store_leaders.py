"""Moving the leader of a store to another node: at the request of an operator, and where its copy is to leave its node."""

from __future__ import annotations

from triplicate.client import Client
from triplicate.errors import ArgumentError, NodeExists, NoNode, SessionExpired, StoreUnavailable, TriplicateError
from triplicate.kv.engine.replicated_store import ReplicatedStore
from triplicate.kv.hosting.store_directory import StoreInfo, missing_store, store_info, store_names
from triplicate.metadata import own_paths
from triplicate.replica import HostedCopies, NodeParts, PlacedReplica, Role, best_leader, hand_leader_over, listed_nodes
from triplicate.runtime import sleep

LEAVING_CHECK_S = 0.5
"""Interval at which a node looks for leaders that are to leave it."""
LEAVING_LIMIT_S = 15.0
"""Time limit of the move of such a leader, in addition to `node.handover_limit_s`."""


async def move_store_leader(client: Client, name: str, target: str, limit_s: float) -> None:
    """Have another node lead a store, and wait until it does. Batches that wait at the former leader meet NotLeading.

    Args:
        limit_s: the request is withdrawn after this time, in seconds. The present leader then goes on.

    Raises:
        NoSuchStore. StoreUnavailable: its leader is being moved already, or the target does not lead in time.
    """
    try:
        await hand_leader_over(client, own_paths.store_path(client.metadata.own_root, name), target, limit_s)
    except NoNode:
        raise missing_store(name) from None
    except NodeExists:
        raise StoreUnavailable(f"the leader of store {name!r} is being moved already; try again later") from None
    except TimeoutError:
        raise StoreUnavailable(
            f"node {target} does not lead store {name!r} within {limit_s:g} s; the request is withdrawn. The log does not answer, or the "
            f"other copy is behind: see triplicate kv show {name}"
        ) from None


async def choose_store_leader(client: Client, name: str, target: str = "") -> str:
    """The node to which the leader of a store can move: the one that is named, or the one with the fewest stores to lead.

    Args:
        target: empty for any node.

    Raises:
        NoSuchStore. ArgumentError: there is no such node. StoreUnavailable: the node cannot lead it, or no node leads it now.
    """
    info = await store_info(client, name)
    if info.leader is None:
        raise StoreUnavailable(f"no node leads store {name!r} now; triplicate kv show {name} shows its copies")
    nodes = await listed_nodes(client)
    if not target:
        chosen = best_leader(_placed(info), await placed_stores(client), [one.placed() for one in nodes])
        if not chosen:
            raise StoreUnavailable(f"no other node can lead store {name!r}; triplicate kv show {name} shows its copies")
        return chosen
    found = next((one for one in nodes if one.name == target), None)
    if found is None:
        known = ", ".join(one.name for one in nodes) or "none"
        raise ArgumentError(f"there is no node {target!r}; the nodes are: {known}")
    if found.entry.is_draining:
        raise StoreUnavailable(f"node {target} cannot lead store {name!r}: it is draining")
    if not any(one.node_id == target and one.serves for one in info.nodes):
        raise StoreUnavailable(f"node {target} cannot lead store {name!r}: it has no copy that can be used now")
    return target


async def placed_stores(client: Client) -> list[PlacedReplica]:
    """All stores with their leaders and their copies, by name."""
    return [_placed(await store_info(client, name)) for name in await store_names(client)]


def _placed(info: StoreInfo) -> PlacedReplica:
    served_on = frozenset(one.node_id for one in info.nodes if one.serves)
    return PlacedReplica(info.name, info.placement, info.leader or "", served_on)


async def move_leaders_away(parts: NodeParts, stores: HostedCopies[ReplicatedStore, StoreInfo]) -> None:
    """Have other nodes lead the stores whose copies are to leave this node, until cancelled.

    Raises:
        SessionExpired: the metadata tree was closed.
    """
    limit_s = parts.settings.handover_limit_s + LEAVING_LIMIT_S
    while True:
        await sleep(parts.host.clock, LEAVING_CHECK_S)
        for name, hosted in sorted(stores.hosted.items()):
            if not hosted.is_leaving or hosted.role is not Role.LEADER:
                continue
            try:
                await move_store_leader(parts.client, name, await choose_store_leader(parts.client, name), limit_s)
            except SessionExpired:
                raise
            except TriplicateError as error:
                parts.host.trace("node.leader_not_moved", node=parts.settings.node_id, store=name, error=str(error))
