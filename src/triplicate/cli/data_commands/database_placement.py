"""``triplicate database alter`` and ``move-leader``: the copies of a database and its leader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from triplicate.cli.terminal.client_run import run_with_client
from triplicate.cli.terminal.options import FiniteRange, metadata_option
from triplicate.cli.terminal.output import remarks
from triplicate.client import Client
from triplicate.replica import expected_copies
from triplicate.sql import DatabaseInfo, ListedNode, Placement, alter_placement, choose_leader, move_leader

EVERY_NODE = "all"
NO_NODE = "none"
MOVE_LIMIT_S = 60.0


class CopyNumber(click.ParamType[str]):
    """A number of copies, or ``all``."""

    name = "copies"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> str:
        text = str(value)
        if text != EVERY_NODE and not (text.isascii() and text.isdigit() and int(text) > 0):
            self.fail(f"{text!r} is neither a number of copies nor {EVERY_NODE}", parameter, context)
        return text


copies_option = click.option(
    "--copies", type=CopyNumber(), metavar="N", help=f"Number of nodes with a copy that may lead. {EVERY_NODE}: every node."
)
readers_option = click.option(
    "--read-only-on",
    "readers",
    multiple=True,
    metavar="NODE",
    help=f"A further node with a copy that is read and never leads. May be repeated. {NO_NODE}: no such node.",
)
weight_option = click.option("--weight", type=FiniteRange(0, min_open=True), help="Load of this database beside others; 1 by default.")


def placed(former: Placement, copies: str | None, readers: Sequence[str], weight: float | None, preferred: str | None = None) -> Placement:
    """A placement with the changes that options name. None and an empty list change nothing."""
    if copies is not None:
        former = replace(former, copies=None if copies == EVERY_NODE else int(copies))
    if readers:
        former = replace(former, readers=tuple(sorted({node for node in readers if node != NO_NODE})))
    if weight is not None:
        former = replace(former, weight=weight)
    if preferred is not None:
        former = replace(former, preferred="" if preferred == NO_NODE else preferred)
    return former


@click.command()
@metadata_option
@click.argument("name", metavar="DATABASE")
@copies_option
@readers_option
@weight_option
@click.option("--preferred-leader", "preferred", metavar="NODE", help=f"The node that leads it while it can. {NO_NODE}: any node.")
def alter(
    metadata: str | None, name: str, copies: str | None, readers: tuple[str, ...], weight: float | None, preferred: str | None
) -> None:
    """Change the number of copies of a database, its read-only copies, its weight, or its preferred leader.

    The nodes carry it out: a copy is deleted only when every copy that is expected on other nodes has caught up with it.
    """
    if copies is None and not readers and weight is None and preferred is None:
        raise click.UsageError("nothing to change: give --copies, --read-only-on, --weight or --preferred-leader")

    async def work(client: Client) -> None:
        info = await alter_placement(client, name, lambda former: placed(former, copies, readers, weight, preferred))
        remarks.print(f"database {name}: {placement_text(info.placement)}; triplicate database show {name} shows its copies")

    run_with_client(metadata, work)


@click.command("move-leader")
@metadata_option
@click.argument("name", metavar="DATABASE")
@click.argument("node", metavar="[NODE]", default="")
@click.option(
    "--timeout", "timeout_s", type=FiniteRange(0.1, 3600), default=MOVE_LIMIT_S, show_default=True, help="Seconds to wait for it."
)
def move_leader_command(metadata: str | None, name: str, node: str, timeout_s: float) -> None:
    """Let another node lead a database: NODE, or the one with the least load.

    The leader begins no further transaction and waits for the one that runs, up to node.handover_limit_s. Its sessions then end with
    57P01, and clients that connect again find the new leader. The nodes even out their leaders, and may move it again; --preferred-leader
    of triplicate database alter keeps it.
    """

    async def work(client: Client) -> None:
        target = await choose_leader(client, name, node)
        await move_leader(client, name, target, timeout_s)
        remarks.print(f"node {target} leads database {name}")

    run_with_client(metadata, work)


def placement_text(placement: Placement) -> str:
    """A placement in words."""
    copies = "a copy on every node" if placement.copies is None else f"{placement.copies} copies"
    readers = f", read-only on {', '.join(placement.readers)}" if placement.readers else ""
    weight = f", weight {placement.weight:g}" if placement.weight != 1 else ""
    preferred = f", preferred leader {placement.preferred}" if placement.preferred else ""
    return copies + readers + weight + preferred


def copies_text(info: DatabaseInfo, nodes: Sequence[ListedNode]) -> str:
    """How many of the expected copies can be used."""
    expected = expected_copies(info.placement, nodes)
    actual = sum(one.node_id in expected and one.serves for one in info.nodes)
    readers = sum(one.node_id in info.placement.readers and one.serves for one in info.nodes)
    read_only = f", {readers} of {len(info.placement.readers)} read-only" if info.placement.readers else ""
    return f"{actual} of {max(len(expected), info.placement.copies or 0)} copies{read_only}"
