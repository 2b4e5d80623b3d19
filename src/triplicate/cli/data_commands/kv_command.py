"""``triplicate kv``: create, list, show, move and drop replicated key-value stores."""

from __future__ import annotations

import click

from triplicate.cli.data_commands import kv_data_commands
from triplicate.cli.data_commands.log_keys import key_option
from triplicate.cli.terminal.client_run import run_with_client
from triplicate.cli.terminal.options import FiniteRange, client_settings, metadata_option
from triplicate.cli.terminal.output import confirm, print_json, print_table, remarks
from triplicate.client import Client
from triplicate.config.log_settings import LogClientSettings
from triplicate.kv import (
    LEASE_S,
    LONGEST_LEASE_S,
    StoreInfo,
    choose_store_leader,
    create_store,
    drop_store,
    move_store_leader,
    store_info,
    store_names,
)
from triplicate.log import Logs

MOVE_LIMIT_S = 60.0

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_name = click.argument("name", metavar="STORE")


@click.group()
def kv() -> None:
    """Create, list, show and drop key-value stores.

    A store is a replicated log of changes and a copy of the resulting keys and values on every node, in RocksDB.
    """


for _one in kv_data_commands.COMMANDS:
    kv.add_command(_one)


@kv.command()
@metadata_option
@_name
@click.option(
    "--lease",
    "lease_s",
    type=FiniteRange(0, LONGEST_LEASE_S),
    default=LEASE_S,
    show_default=True,
    metavar="SECONDS",
    help="Time after an append in which the leader answers reads on its own. A new leader waits for its end. 0: each read waits for the "
    "log; use it if the rates of the machines' clocks are not reliable. It cannot be changed later.",
)
@key_option
@_json
def create(metadata: str | None, name: str, lease_s: float, key_id: str, as_json: bool) -> None:
    """Create an empty store. Running nodes begin to host it by themselves."""

    async def work(client: Client) -> None:
        logs = Logs(client, client_settings(LogClientSettings))
        info = await create_store(client, name, logs=logs, lease_s=lease_s, key_id=key_id)
        if as_json:
            print_json(_facts(info))
        else:
            remarks.print(f"store {info.name} created")

    run_with_client(metadata, work)


@kv.command(name="list")
@metadata_option
@_json
def list_stores(metadata: str | None, as_json: bool) -> None:
    """List the stores, with their leaders."""

    async def work(client: Client) -> None:
        infos = [await store_info(client, name) for name in await store_names(client)]
        if as_json:
            print_json([_facts(info) for info in infos])
            return
        rows = [(info.name, _leader(info), len(info.nodes), info.log) for info in infos]
        print_table(("store", "leader", "nodes", "log"), rows, right=("nodes",))

    run_with_client(metadata, work)


@kv.command()
@metadata_option
@_name
@_json
def show(metadata: str | None, name: str, as_json: bool) -> None:
    """Show a store: its leader, and the copy of each node.

    The role of a copy is leader, follower, candidate (elected, and taking the log over), diverged (different from the log and not served;
    the reason is shown) or failed (it will be opened again soon). The lag is the number of log records behind the most advanced copy.
    """

    async def work(client: Client) -> None:
        info = await store_info(client, name)
        if as_json:
            print_json(_facts(info))
            return
        columns = ["node", "role", "address", "resp", "position", "lag", "reason"]
        rows = [
            (one.node_id, one.role, one.address, one.resp_address, one.position, _lag(one.position, info), one.reason) for one in info.nodes
        ]
        shown = [at for at in range(len(columns)) if not rows or any(row[at] != "" for row in rows)]
        print_table(
            [columns[at] for at in shown],
            [tuple(row[at] for at in shown) for row in rows],
            right=("position", "lag"),
            title=f"store {info.name}, log {info.log}",
        )

    run_with_client(metadata, work)


@kv.command("move-leader")
@metadata_option
@_name
@click.argument("node", metavar="[NODE]", default="")
@click.option(
    "--timeout", "timeout_s", type=FiniteRange(0.1, 3600), default=MOVE_LIMIT_S, show_default=True, help="Seconds to wait for it."
)
def move_leader(metadata: str | None, name: str, node: str, timeout_s: float) -> None:
    """Let another node lead a store: NODE, or the one with the fewest stores to lead.

    The leader waits for the changes that are at the log, up to node.handover_limit_s. Those that come meanwhile are refused (READONLY),
    and clients that ask again find the new leader.
    """

    async def work(client: Client) -> None:
        target = await choose_store_leader(client, name, node)
        await move_store_leader(client, name, target, timeout_s)
        remarks.print(f"node {target} leads store {name}")

    run_with_client(metadata, work)


@kv.command()
@metadata_option
@_name
@click.option("--yes", is_flag=True, help="Do not ask.")
def drop(metadata: str | None, name: str, yes: bool) -> None:
    """Delete a store for good: its keys, its log and its snapshots.

    A drop that was interrupted is finished when it is repeated.
    """
    if not yes:
        confirm(f"delete store {name} with all its keys?")

    async def work(client: Client) -> None:
        await drop_store(client, name, Logs(client, client_settings(LogClientSettings)))
        remarks.print(f"store {name} dropped")

    run_with_client(metadata, work)


def _leader(info: StoreInfo) -> str:
    return "dropping" if info.is_dropping else info.leader or "none"


def _lag(position: int, info: StoreInfo) -> int:
    """Number of log records that a copy lacks in comparison with the most advanced copy."""
    return max(one.position for one in info.nodes) - position


def _facts(info: StoreInfo) -> dict[str, object]:
    nodes = [
        {
            "node": one.node_id,
            "address": one.address,
            "resp": one.resp_address or None,
            "role": one.role,
            "position": one.position,
            "lag": _lag(one.position, info),
            "reason": one.reason or None,
        }
        for one in info.nodes
    ]
    return {"store": info.name, "log": info.log, "leader": info.leader, "dropping": info.is_dropping, "nodes": nodes}
