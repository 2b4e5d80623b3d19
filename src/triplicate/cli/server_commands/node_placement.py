"""``triplicate node list``, ``drain``, ``undrain``, ``alter`` and ``remove``: the nodes of a cluster and what they lead and have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import click

from triplicate.cli.terminal.client_run import run_with_client
from triplicate.cli.terminal.options import FiniteRange, metadata_option
from triplicate.cli.terminal.output import confirm, print_json, print_table, remarks
from triplicate.client import Client
from triplicate.errors import ReplicaError
from triplicate.kv import placed_stores
from triplicate.runtime import sleep
from triplicate.sql import (
    ListedNode,
    PlacedReplica,
    drain_node,
    listed_nodes,
    placed_databases,
    remove_node,
    set_node_weight,
    undrain_node,
)

POLL_S = 0.5
NAMED_MAX = 5
COUNTED = ("leaders", "copies", "store_leaders", "store_copies")
_name = click.argument("name", metavar="NODE")


@dataclass(frozen=True, slots=True)
class NodeShare:
    """A node with its databases and its stores."""

    node: ListedNode
    leaders: int
    copies: int
    weight_led: float
    store_leaders: int
    store_copies: int


def shares_of(nodes: Sequence[ListedNode], databases: Sequence[PlacedReplica], stores: Sequence[PlacedReplica]) -> list[NodeShare]:
    """Each node with the number of databases that it leads, and of copies that can be used there; the same for stores."""
    leaders, copies = _counts(databases)
    store_leaders, store_copies = _counts(stores)
    led: Counter[str] = Counter()
    for one in databases:
        led[one.leader] += one.placement.weight  # type: ignore[assignment]  # A Counter of weights.
    return [
        NodeShare(one, leaders[one.name], copies[one.name], float(led[one.name]), store_leaders[one.name], store_copies[one.name])
        for one in nodes
    ]


def _counts(replicas: Sequence[PlacedReplica]) -> tuple[Counter[str], Counter[str]]:
    """The numbers of leaders and of copies, by node."""
    return Counter(one.leader for one in replicas), Counter(node for one in replicas for node in one.served_on)


@click.command("list")
@metadata_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_nodes(metadata: str | None, as_json: bool) -> None:
    """List the nodes: state, weight, and the numbers of databases and key-value stores that they lead and of which they have copies.

    States: normal; draining, it gives up its leaders and copies; absent, it does not run.
    """

    async def work(client: Client) -> None:
        found = shares_of(await listed_nodes(client), await placed_databases(client), await placed_stores(client))
        if as_json:
            print_json([_facts(one) for one in found])
            return
        counts = [name.replace("_", " ") for name in COUNTED]
        rows = [
            (one.node.name, one.node.address or "-", one.node.state, one.node.entry.weight, *(getattr(one, name) for name in COUNTED))
            for one in found
        ]
        print_table(("node", "address", "state", "weight", *counts), rows, right=("weight", *counts))

    run_with_client(metadata, work)


def _facts(share: NodeShare) -> dict[str, object]:
    node = share.node
    return {
        "node": node.name,
        "address": node.address or None,
        "state": node.state,
        "running": node.is_running,
        "weight": node.entry.weight,
        "weight_led": share.weight_led,
        **{name: getattr(share, name) for name in COUNTED},
    }


@click.command()
@metadata_option
@_name
@click.option("--wait", is_flag=True, help="Wait until it has neither leaders nor copies.")
@click.option("--timeout", "timeout_s", type=FiniteRange(0), default=3600.0, show_default=True, help="Seconds to wait for it.")
def drain(metadata: str | None, name: str, wait: bool, timeout_s: float) -> None:
    """Let a node give up its leaders, and then its copies, for example before it is stopped for good.

    Other nodes take them over. A copy is deleted when every expected copy on other nodes has caught up with it. It is refused if too few
    nodes would be left for a database or a key-value store.
    """

    async def work(client: Client) -> None:
        await drain_node(client, name, await placed_stores(client))
        if not wait:
            remarks.print(f"node {name} is draining; triplicate node list shows what it still has")
            return
        deadline_s = client.host.clock.monotonic() + timeout_s
        while left := await replicas_on(client, name):
            if client.host.clock.monotonic() >= deadline_s:
                raise ReplicaError(
                    f"node {name} still has {_named(left)} after {timeout_s:g} s, and goes on draining: check that the other nodes' copies "
                    "are there and catch up (`triplicate database show`, `triplicate kv show`)"
                )
            await sleep(client.host.clock, POLL_S)
        remarks.print(f"node {name} has no database and no store any more; it can be stopped")

    run_with_client(metadata, work)


async def replicas_on(client: Client, node: str) -> list[PlacedReplica]:
    """The databases and stores of which a node has a copy, or which it leads."""
    replicas = [*await placed_databases(client), *await placed_stores(client)]
    return [one for one in replicas if node in one.served_on or one.leader == node]


def _named(replicas: Sequence[PlacedReplica]) -> str:
    names = ", ".join(one.name for one in replicas[:NAMED_MAX])
    return names + (f" and {len(replicas) - NAMED_MAX} more" if len(replicas) > NAMED_MAX else "")


@click.command()
@metadata_option
@_name
def undrain(metadata: str | None, name: str) -> None:
    """Let a node have leaders and copies again."""

    async def work(client: Client) -> None:
        await undrain_node(client, name)
        remarks.print(f"node {name} takes databases again")

    run_with_client(metadata, work)


@click.command()
@metadata_option
@_name
@click.option("--weight", type=FiniteRange(0, min_open=True), required=True, help="Share of the load beside other nodes; 1 by default.")
def alter(metadata: str | None, name: str, weight: float) -> None:
    """Change the weight of a node: how much of the load it takes beside other nodes."""

    async def work(client: Client) -> None:
        await set_node_weight(client, name, weight)
        remarks.print(f"node {name} has weight {weight:g}")

    run_with_client(metadata, work)


@click.command()
@metadata_option
@_name
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(metadata: str | None, name: str, yes: bool) -> None:
    """Remove a node that does not run and will not come back. Other nodes are chosen at once for the copies that it was to have."""
    if not yes:
        confirm(f"remove node {name} from the cluster?")

    async def work(client: Client) -> None:
        await remove_node(client, name)
        remarks.print(f"node {name} is removed")

    run_with_client(metadata, work)
