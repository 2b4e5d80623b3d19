"""The placement of all databases: its facts, and changes of it by operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from triplicate.client import Client
from triplicate.errors import ArgumentError, BadVersion, FormatError, NodeExists, NoNode, SqlError
from triplicate.metadata import own_paths
from triplicate.replica import (
    COPIES_MAX,
    EVERYWHERE,
    ListedNode,
    NodeEntry,
    PlacedReplica,
    Placement,
    candidates_of,
    leader_of,
    listed_nodes,
    placement_change,
    placement_version,
    shortages,
)
from triplicate.runtime import map_bounded
from triplicate.sql.hosting.database_directory import DatabaseEntry, DatabaseInfo, database_names, read_stored
from triplicate.sql.hosting.node_changes import ATTEMPTS, busy_placement, change_node, check_weight, no_such_node

READS_AT_ONCE = 16
NAMED_MAX = 5
"""How many databases an error names. It counts the others."""


@dataclass(frozen=True, slots=True)
class StoredDatabase:
    """A database with its state and its entry."""

    placed: PlacedReplica
    entry: DatabaseEntry


async def stored_databases(client: Client) -> list[StoredDatabase]:
    """All databases, by name, without those that cannot be read."""
    names = await database_names(client)
    found = await map_bounded(partial(_stored, client), names, most=READS_AT_ONCE, name="databases")
    return [one for one in found if one is not None]


async def placed_databases(client: Client) -> list[PlacedReplica]:
    """All databases with their placement and their state, by name, without those that cannot be read."""
    return [one.placed for one in await stored_databases(client)]


async def _stored(client: Client, name: str) -> StoredDatabase | None:
    tree, path = client.metadata.tree, own_paths.database_path(client.metadata.own_root, name)
    try:
        entry = await read_stored(client, name)
        leader = await leader_of(tree, path)
    except (SqlError, FormatError):
        return None
    served_on = frozenset(one.node_id for one in await candidates_of(tree, path) if one.serves)
    placed = PlacedReplica(name, entry.info.placement, "" if leader is None else leader.node_id, served_on)
    return StoredDatabase(placed, entry)


def check_placement(placement: Placement) -> Placement:
    """Raises ArgumentError if a placement is not valid."""
    check_weight(placement.weight)
    if placement.copies is not None and not 1 <= placement.copies <= COPIES_MAX:
        raise ArgumentError(f"a database has 1 to {COPIES_MAX} copies, or one on every node; not {placement.copies}")
    if placement.preferred in placement.readers:
        raise ArgumentError(f"node {placement.preferred!r} cannot be read-only and preferred as the leader")
    return placement


async def alter_placement(client: Client, name: str, update: Callable[[Placement], Placement]) -> DatabaseInfo:
    """Change the placement of a database. The nodes carry it out.

    Raises:
        SqlError: 3D000, there is none; 42704, no such node; 55000, too few nodes are able to have the copies; 40001, others change it all
        the time. ArgumentError: the placement is not valid.
    """
    meant: bytes | None = None
    for _ in range(ATTEMPTS):
        version = await placement_version(client)
        nodes = await listed_nodes(client)
        stored = await read_stored(client, name, meant)
        meant, former = stored.info.identity, stored.info.placement
        changed = replace(stored.info, placement=check_placement(_normal(update(former), nodes, former)))
        _require_nodes(name, changed.placement, nodes)
        try:
            await client.metadata.tree.multi([placement_change(client, version), *stored.change(changed)])
        except (BadVersion, NoNode, NodeExists):
            continue
        return changed
    raise busy_placement()


def _normal(placement: Placement, nodes: Sequence[ListedNode], former: Placement) -> Placement:
    """A placement without contradictions. The present nodes keep their copies when a number of copies is given for the first time."""
    if placement.copies is None:
        return replace(placement, nodes=())
    chosen = placement.nodes
    if former.copies is None:
        # All of them have copies. The plan then keeps the expected number, and no copy is made.
        chosen = tuple(one.name for one in nodes if one.is_running and one.knows_placement)
    return replace(placement, nodes=tuple(node for node in chosen if node not in placement.readers))


def _require_nodes(name: str, placement: Placement, nodes: Sequence[ListedNode]) -> None:
    known = {one.name for one in nodes}
    for node in (*placement.readers, *([placement.preferred] if placement.preferred else [])):
        if node not in known:
            raise no_such_node(node, nodes)
    for one in shortages([PlacedReplica(name, placement)], [node.placed() for node in nodes]):
        raise SqlError(
            "55000",
            f"database {name} would have {one.expected} copies, and only {one.able} nodes are able to have one",
            hint="triplicate node list shows the nodes. Start more nodes, or ask for fewer copies.",
        )


async def new_placement(client: Client, name: str, placement: Placement) -> Placement:
    """The placement for a database that is to be made.

    Raises:
        SqlError: 42704, no such node; 55000, too few nodes are able to have the copies. ArgumentError: the placement is not valid.
    """
    if placement != EVERYWHERE:
        _require_nodes(name, check_placement(placement), await listed_nodes(client))
    return placement


async def drain_node(client: Client, name: str, others: Sequence[PlacedReplica] = ()) -> NodeEntry:
    """Let a node give up its leaders and its copies. The balancer moves them to other nodes.

    Args:
        others: replicas besides the databases, which must not be left without nodes either.

    Raises:
        SqlError: 42704, no such node; 55000, too few nodes would be left for a database, and nothing is changed.
    """

    async def check(nodes: Sequence[ListedNode]) -> None:
        short = shortages([*await placed_databases(client), *others], [one.placed() for one in nodes])
        if short:
            named = ", ".join(f"{one.name} ({one.expected} expected, {one.able} possible)" for one in short[:NAMED_MAX])
            rest = f" and {len(short) - NAMED_MAX} more" if len(short) > NAMED_MAX else ""
            hint = "Start another node first, or lower the numbers with triplicate database alter NAME --copies N."
            raise SqlError("55000", f"without node {name}, too few nodes would be left for the copies of {named}{rest}", hint=hint)

    return await change_node(client, name, lambda entry: replace(entry, is_draining=True), check)


async def undrain_node(client: Client, name: str) -> NodeEntry:
    """Let a node have leaders and copies again. Raises SqlError 42704: no such node."""
    return await change_node(client, name, lambda entry: replace(entry, is_draining=False))


async def set_node_weight(client: Client, name: str, weight: float) -> NodeEntry:
    """Set the share of the load that a node takes. Raises SqlError 42704: no such node; ArgumentError: it is no weight."""
    check_weight(weight)
    return await change_node(client, name, lambda entry: replace(entry, weight=weight))
