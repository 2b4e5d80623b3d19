"""``triplicate database``: create, list, show, rename, drop and undelete replicated SQL databases, and their snapshots."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import click

from triplicate.cli.data_commands import backup_commands
from triplicate.cli.data_commands.database_placement import (
    alter,
    copies_option,
    copies_text,
    move_leader_command,
    placed,
    readers_option,
    weight_option,
)
from triplicate.cli.data_commands.log_keys import key_option
from triplicate.cli.data_commands.snapshot_requests import request_snapshot, snapshot_facts, time_text, verdict
from triplicate.cli.terminal.client_run import run_with_client
from triplicate.cli.terminal.options import FiniteRange, client_settings, metadata_option
from triplicate.cli.terminal.output import confirm, print_json, print_table, remarks
from triplicate.client import Client
from triplicate.config import DatabaseClientSettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ConfigError, ReplicaError, SnapshotDamaged
from triplicate.log import Logs
from triplicate.replica import Candidate, expected_copies, missing_copies
from triplicate.security import read_secret_file
from triplicate.sql import (
    EVERYWHERE,
    LEASE_S,
    LONGEST_LEASE_S,
    Administrator,
    DatabaseInfo,
    DroppedDatabase,
    create_database,
    database_info,
    database_names,
    drop_database,
    dropped_databases,
    listed_nodes,
    new_placement,
    rename_database,
    set_administrator,
    undelete_database,
)

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_name = click.argument("name", metavar="DATABASE")
_password_file = click.option(
    "--password-file", type=click.Path(dir_okay=False), metavar="FILE", help="File with the password; only its owner may read it."
)
PASSWORD_VARIABLE = "TRIPLICATE_ADMINISTRATOR_PASSWORD"


def administrator_password(path: str | None) -> str:
    """The password from a file, or from the environment.

    Raises:
        ConfigError: there is none, or the file cannot be read or is not private.
    """
    if path is not None:
        return read_secret_file(path, "--password-file")
    password = os.environ.get(PASSWORD_VARIABLE, "")
    if not password:
        raise ConfigError(f"a password is needed: give --password-file FILE, or set {PASSWORD_VARIABLE}")
    return password


@click.group()
def database() -> None:
    """Create, list, show, rename, drop, back up and restore databases.

    A database is a replicated log of row changes and a copy of the resulting SQLite database on its nodes. `triplicate sql` opens one.
    """


@database.command()
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
@click.option(
    "--administrator",
    "role",
    metavar="ROLE",
    help="The role that may do everything in it. Nodes with node.authentication = scram need one.",
)
@_password_file
@copies_option
@readers_option
@weight_option
@_json
def create(
    metadata: str | None,
    name: str,
    lease_s: float,
    key_id: str,
    role: str | None,
    password_file: str | None,
    copies: str | None,
    readers: tuple[str, ...],
    weight: float | None,
    as_json: bool,
) -> None:
    """Create an empty database. Running nodes begin to host it by themselves: all of them, or as many as --copies says.

    The password of the administrator comes from --password-file, or from the variable TRIPLICATE_ADMINISTRATOR_PASSWORD. Without
    --administrator, the role and the password of section database_client of the settings are taken, if there are any.
    """
    if password_file is not None and role is None:
        raise click.UsageError("--password-file is for an --administrator")
    defaults = client_settings(DatabaseClientSettings)
    if role is None and defaults.password_file:
        role, password_file = defaults.role, defaults.password_file
    password = None if role is None else administrator_password(password_file)

    async def work(client: Client) -> None:
        administrator = None if role is None or password is None else Administrator.of_password(client, role, password)
        logs = Logs(client, client_settings(LogClientSettings))
        placement = await new_placement(client, name, placed(EVERYWHERE, copies, readers, weight))
        info = await create_database(
            client, name, logs=logs, lease_s=lease_s, key_id=key_id, administrator=administrator, placement=placement
        )
        if as_json:
            print_json(_facts(info))
        else:
            remarks.print(f"database {info.name} created; open it with: triplicate sql {info.name}")

    run_with_client(metadata, work)


@database.command(name="administrator")
@metadata_option
@_name
@click.argument("role", metavar="ROLE")
@_password_file
def change_administrator(metadata: str | None, name: str, role: str, password_file: str | None) -> None:
    """Set or replace the administrator of a database, with its password. It serves for the first login, and for a lost password.

    The password comes from --password-file, or from the variable TRIPLICATE_ADMINISTRATOR_PASSWORD. Nodes use it at once. Sessions that
    are open go on.
    """
    password = administrator_password(password_file)

    async def work(client: Client) -> None:
        await set_administrator(client, name, Administrator.of_password(client, role, password))
        remarks.print(f"role {role} is the administrator of database {name}")

    run_with_client(metadata, work)


@database.command()
@metadata_option
@_name
@click.option("--yes", is_flag=True, help="Do not ask.")
def drop(metadata: str | None, name: str, yes: bool) -> None:
    """Drop a database: its name is free at once, and its nodes end its sessions and delete their copies.

    Its log is kept for a while (node.dropped_keep_s), so that `triplicate database undelete` can restore the database.
    """
    if not yes:
        confirm(f"drop database {name}?")

    async def work(client: Client) -> None:
        await drop_database(client, name)
        remarks.print(f"database {name} dropped; while its log is kept, this restores it: triplicate database undelete {name}")

    run_with_client(metadata, work)


@database.command()
@metadata_option
@_name
def undelete(metadata: str | None, name: str) -> None:
    """Restore the last dropped database with this name. Nodes build their copies from its log."""

    async def work(client: Client) -> None:
        await undelete_database(client, name)
        remarks.print(f"database {name} is back")

    run_with_client(metadata, work)


@database.command()
@metadata_option
@_name
@click.argument("new_name", metavar="NEW_NAME")
def rename(metadata: str | None, name: str, new_name: str) -> None:
    """Rename a database. Its sessions are ended. Its content and its log stay, and the log keeps its name."""

    async def work(client: Client) -> None:
        await rename_database(client, name, new_name)
        remarks.print(f"database {name} is now {new_name}")

    run_with_client(metadata, work)


@database.command(name="list")
@metadata_option
@click.option("--dropped", is_flag=True, help="List dropped databases that can be undeleted.")
@_json
def list_databases(metadata: str | None, dropped: bool, as_json: bool) -> None:
    """List the databases, with their leaders."""

    async def show_dropped(client: Client) -> None:
        found = await dropped_databases(client)
        if as_json:
            facts = [{"database": one.info.name, "log": one.info.log, "dropped_ms": one.dropped_ms, "state": one.state} for one in found]
            print_json(facts)
        else:
            rows = [(one.info.name, shown_time(one), one.state, one.info.log) for one in found]
            print_table(("database", "dropped", "state", "log"), rows)

    async def work(client: Client) -> None:
        if dropped:
            await show_dropped(client)
            return
        infos = [await database_info(client, name) for name in await database_names(client)]
        if as_json:
            print_json([_facts(info) for info in infos])
            return
        rows = [(info.name, info.leader or "none", len(info.nodes), info.log) for info in infos]
        print_table(("database", "leader", "nodes", "log"), rows, right=("nodes",))

    run_with_client(metadata, work)


@database.command()
@metadata_option
@_name
@_json
def show(metadata: str | None, name: str, as_json: bool) -> None:
    """Show a database: its leader, and the copy of each node.

    The role of a copy is leader, follower, candidate (elected, and taking the log over), diverged (different from the log and not served;
    the reason is shown), failed (it will be opened again soon) or missing (expected on a node that reports none). The lag is the number of
    log records behind the most advanced copy.
    """

    async def work(client: Client) -> None:
        info = await database_info(client, name)
        nodes = await listed_nodes(client)
        missing = missing_copies(info.placement, nodes, [one.node_id for one in info.nodes])
        if as_json:
            expected = len(expected_copies(info.placement, nodes))
            print_json({**_facts(info), "expected_copies": expected, "missing_on": missing})
            return
        rows: list[tuple[str, str, str, int | str, int | str, str]] = [
            (one.node_id, shown_role(one, info), one.address, one.position, lag_of(one, info), one.reason) for one in info.nodes
        ]
        rows += [(node, "missing", "-", "-", "-", "") for node in missing]
        shown = 6 if any(one.reason for one in info.nodes) else 5
        columns = ("node", "role", "address", "position", "lag", "reason")[:shown]
        title = f"database {info.name}, log {info.log}: {copies_text(info, nodes)}"
        print_table(columns, [row[:shown] for row in rows], right=("position", "lag"), title=title)

    run_with_client(metadata, work)


@database.command()
@metadata_option
@_name
@click.option(
    "--timeout", "timeout_s", type=FiniteRange(0, 86400), default=600.0, show_default=True, help="Seconds to wait for it; 0: none."
)
@_json
def snapshot(metadata: str | None, name: str, timeout_s: float, as_json: bool) -> None:
    """Request a snapshot with everything acknowledged so far, and wait until it is listed.

    A follower makes it, or the leader if there is no follower. The request stays in the metadata until it is fulfilled.
    """

    async def work(client: Client) -> None:
        info = await database_info(client, name)
        logs = Logs(client, client_settings(LogClientSettings))
        made = await request_snapshot(logs.snapshots(info.log), await logs.acknowledged_end(info.log), timeout_s)
        if made is None and not timeout_s:
            remarks.print(f"a snapshot of database {name} is requested")
        elif made is None:
            raise ReplicaError(
                f"no snapshot of database {name} was listed within {timeout_s:g} s; the request stays: check that a node runs "
                "(`triplicate database show`), and search its log for replica.snapshot_failed"
            )
        elif as_json:
            print_json(snapshot_facts(made))
        else:
            remarks.print(f"snapshot {made.snapshot_id} of database {name} is at position {made.position}")

    run_with_client(metadata, work)


@database.command()
@metadata_option
@_name
@click.option("--verify", is_flag=True, help="Read each snapshot from the bookies and compare it with its listed digest.")
@_json
def snapshots(metadata: str | None, name: str, verify: bool, as_json: bool) -> None:
    """List the snapshots of a database, oldest first. With --verify: exit code 1 if one cannot be loaded."""

    async def work(client: Client) -> None:
        info = await database_info(client, name)
        door = Logs(client, client_settings(LogClientSettings)).snapshots(info.log)
        listed = (await door.read(fresh=True)).snapshots
        states = {one.snapshot_id: await verdict(door, one) if verify else one.state.value for one in listed}
        if as_json:
            print_json([{**snapshot_facts(one), "state": states[one.snapshot_id]} for one in listed])
        else:
            rows = [
                (one.snapshot_id, one.position, time_text(one.time_ms), one.size_bytes, one.stored_bytes, one.node, states[one.snapshot_id])
                for one in listed
            ]
            headings = ("snapshot", "position", "made (UTC)", "bytes", "stored", "node", "state")
            print_table(headings, rows, right=("position", "bytes", "stored"), title=f"snapshots of database {name}")
        bad = [state for state in states.values() if state not in ("good", "verified")]
        if verify and bad:
            raise SnapshotDamaged(f"{len(bad)} of {len(listed)} snapshots of database {name} cannot be loaded")

    run_with_client(metadata, work)


for _command in backup_commands.COMMANDS:
    database.add_command(_command)


def role_of(node: Candidate, info: DatabaseInfo) -> str:
    """The role of a node's copy. Nodes of earlier releases do not report it, but the leader is known."""
    return node.role or ("leader" if node.node_id == info.leader else "follower")


def shown_role(node: Candidate, info: DatabaseInfo) -> str:
    """The role of a node's copy, and whether it never leads."""
    return role_of(node, info) + (", read-only" if node.node_id in info.placement.readers else "")


def lag_of(node: Candidate, info: DatabaseInfo) -> int:
    """Number of log records that a copy lacks in comparison with the most advanced copy."""
    return max(one.position for one in info.nodes) - node.position


def shown_time(dropped: DroppedDatabase) -> str:
    return datetime.fromtimestamp(dropped.dropped_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _facts(info: DatabaseInfo) -> dict[str, object]:
    nodes = [
        {
            "node": one.node_id,
            "address": one.address,
            "role": role_of(one, info),
            "position": one.position,
            "lag": lag_of(one, info),
            "reason": one.reason or None,
        }
        for one in info.nodes
    ]
    administrator = None if info.administrator is None else info.administrator.name
    placement: dict[str, object] = {"copies": info.placement.copies, "chosen": info.placement.nodes, "read_only_on": info.placement.readers}
    placement |= {"weight": info.placement.weight, "preferred_leader": info.placement.preferred or None}
    facts = {"database": info.name, "log": info.log, "leader": info.leader, "administrator": administrator}
    return {**facts, "placement": placement, "nodes": nodes}


database.add_command(alter)
database.add_command(move_leader_command)
