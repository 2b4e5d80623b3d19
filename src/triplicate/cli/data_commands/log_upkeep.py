"""``triplicate log sweep`` and ``triplicate log repair``: deletes leftovers of logs, and repairs logs with lost ledgers."""

from __future__ import annotations

import datetime
import sys
from typing import Any

import click

from triplicate.cli.terminal.client_run import run_with_client, run_with_logs
from triplicate.cli.terminal.options import client_settings, metadata_option
from triplicate.cli.terminal.output import ProgressBar, print_json, print_table, remarks
from triplicate.client import Client
from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ArgumentError, NoSuchLog
from triplicate.log import Examination, Logs, LostLedger, PurposeKind

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@click.argument("name", metavar="[LOG]", required=False)
@metadata_option
@click.option("--dry-run", is_flag=True, help="Delete nothing, and count what would be deleted, without retention.")
@_json
def sweep(name: str | None, metadata: str | None, dry_run: bool, as_json: bool) -> None:
    """Apply retention and delete unreferenced data of LOG, or of all existing and deleted logs.

    Database nodes do this by themselves (`log_client.janitor_interval_s`). Safe at any time: each deletion is made only while the log's
    list is the one in which the sweep looked. Ledgers count as left behind at an age of `log_client.orphan_grace_s`, staging ledgers of
    `log_client.staging_grace_s`.
    """

    async def work(logs: Logs) -> None:
        swept = await logs.sweep(name, dry_run=dry_run) if name else await _sweep_all(logs, dry_run)
        if as_json:
            print_json({"log": name, "dry_run": dry_run, **swept})
        else:
            print_table(("would go" if dry_run else "cleared away", "count"), list(swept.items()), right=("count",))

    run_with_logs(metadata, work)


async def _sweep_all(logs: Logs, dry_run: bool) -> dict[str, int]:
    swept: dict[str, int] = {}
    names = await logs.names()
    with ProgressBar("logs", len(names)) as bar:
        for name in names:
            try:
                for kind, count in (await logs.sweep_lists(name, dry_run=dry_run)).items():
                    swept[kind] = swept.get(kind, 0) + count
            except NoSuchLog:
                remarks.print(f"log {name} was deleted meanwhile")
            bar.advance()
    swept["ledgers"] = len(await logs.sweep_orphans(dry_run=dry_run))
    return swept


@click.command()
@click.argument("name", metavar="LOG")
@metadata_option
@click.option("--apply", is_flag=True, help="Give up the ledgers that cannot be restored, so that the log continues.")
@click.option(
    "--end",
    type=click.IntRange(min=0),
    help="Offset at which the log continues after a lost open segment. Default: beyond all its possible offsets.",
)
@_json
def repair(name: str, metadata: str | None, apply: bool, end: int | None, as_json: bool) -> None:
    """Show the missing ledgers of LOG, the lost offsets, and how to restore them.

    Changes nothing without --apply. A ledger that is still in the trash is restored by `triplicate ledger undelete`, and --apply
    refuses to give it up. A closed segment whose ledger is gone for good stays in the list as lost: reading its offsets is an error, and
    later offsets do not change. A lost open segment is closed in a new epoch, and the log continues at --end; the offsets from its
    beginning up to there are lost, and never given again. For the log of a database, stop its nodes first, and give the position of the
    copy that has applied most.

    Exit code 0: nothing is missing, or --apply has repaired it. 1: something is missing, or cannot be repaired.
    """
    missing: list[LostLedger] = []

    async def work(client: Client) -> None:
        logs = Logs(client, client_settings(LogClientSettings))
        found = await logs.examine(name)
        if apply and found.lost:
            if found.open_is_lost and end is None and found.head.purpose.kind is PurposeKind.DATABASE and not found.recoverable:
                raise ArgumentError(await explain_end(client, name, found))
            acting = logs.acting_for(found.head.purpose)
            repaired = await acting.repair(name, end=end, by="triplicate log repair")
            _print(name, found, as_json, head_end=repaired.head.closed_end)
            return
        _print(name, found, as_json)
        missing.extend(found.lost)

    run_with_client(metadata, work)
    sys.exit(1 if missing else 0)


async def explain_end(client: Client, log: str, found: Examination) -> str:
    """The error for a missing --end, with the positions that nodes report.

    Copies that have applied lost records continue only where the log does, and only the operator knows their positions.
    """
    assert found.head.open is not None, "the open segment is lost"
    # The database layer is half of the imports of `triplicate log`, and only this message needs it.
    from triplicate.sql import database_info, database_names

    positions: list[str] = []
    for name in await database_names(client):
        info = await database_info(client, name)
        if info.log == log:
            positions += [f"{node.node_id} {node.position}" for node in info.nodes]
    reported = f"positions last reported: {', '.join(positions)}" if positions else "no node reports a position"
    return (
        f"log {log!r} belongs to {found.head.purpose}; a copy continues only if the log does so at its position. Stop the nodes, find the "
        f"copy that has applied most, and give its position as --end, at least {found.head.open.first_offset} ({reported})"
    )


def _print(name: str, found: Examination, as_json: bool, head_end: int | None = None) -> None:
    facts: dict[str, Any] = {
        "log": name,
        "purpose": str(found.head.purpose),
        "lost": [_facts(item) for item in found.lost],
        "holes": [list(hole) for hole in found.holes],
        "repaired": head_end is not None,
        "end_offset": head_end if head_end is not None else None,
    }
    if as_json:
        print_json(facts)
        return
    for first, last in found.holes:
        click.echo(f"offsets {first} to {last - 1} were given up before")
    if not found.lost:
        click.echo(f"log {name}: every ledger exists")
        return
    rows = [(item["ledger_id"], item["first_offset"], item["end_offset"] or "?", item["state"], item["remedy"]) for item in facts["lost"]]
    print_table(("ledger", "first", "end", "segment", "remedy"), rows, right=("ledger", "first", "end"))
    if head_end is not None:
        click.echo(f"log {name} is repaired and continues at offset {head_end}")
    elif not found.recoverable and not any(item.is_unreadable for item in found.lost):
        click.echo(f"`triplicate log repair {name} --apply` gives up the lost ledgers" + (_goes_on(found) if found.open_is_lost else ""))


def _goes_on(found: Examination) -> str:
    return f"; the log continues at offset {found.next_offset}, or at --end"


def _facts(item: LostLedger) -> dict[str, Any]:
    until = item.undelete_until_ms
    remedy = "undelete it by a later release, which has put it into the trash" if item.is_unreadable else "none: gone for good"
    if until is not None:
        time = datetime.datetime.fromtimestamp(until / 1000, datetime.UTC).isoformat(timespec="seconds")
        remedy = f"triplicate ledger undelete {item.ledger_id} (until {time})"
    return {
        "ledger_id": item.ledger_id,
        "state": "open" if item.is_open else "closed",
        "first_offset": item.first_offset,
        "end_offset": item.end_offset,
        "remedy": remedy,
    }
