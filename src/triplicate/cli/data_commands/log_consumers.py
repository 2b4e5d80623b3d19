"""``triplicate log consumers``, ``log consumer reset`` and ``log consumer delete``: the named consumers of a log."""

from __future__ import annotations

import datetime
from dataclasses import asdict

import click

from triplicate.cli.data_commands.position_param import PositionParam
from triplicate.cli.terminal.client_run import run_with_logs
from triplicate.cli.terminal.options import metadata_option
from triplicate.cli.terminal.output import print_json, print_table, remarks
from triplicate.log import Logs, Position

_log = click.argument("name", metavar="LOG")
_consumer = click.argument("consumer", metavar="CONSUMER")
_force = click.option("--force", is_flag=True, help="Also while a process consumes, which then cannot save any more.")


@click.command()
@_log
@metadata_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def consumers(name: str, metadata: str | None, as_json: bool) -> None:
    """List the named consumers of LOG: position, how many records they are behind, and who consumes now.

    Records before the log's first offset that a consumer has not read are truncated, and not counted as behind.
    """

    async def work(logs: Logs) -> None:
        found = await logs.consumers(name)
        if as_json:
            print_json([{"log": name, **asdict(item)} for item in found])
            return
        rows = [
            (item.name, item.position, item.lag, item.truncated, item.owner or "-", _time(item.saved_ms) if item.saved_ms else "-")
            for item in found
        ]
        print_table(("consumer", "position", "behind", "truncated", "used by", "saved"), rows, right=("position", "behind", "truncated"))

    run_with_logs(metadata, work)


def _time(time_ms: int) -> str:
    return datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC).isoformat(timespec="seconds")


@click.group()
def consumer() -> None:
    """Reset or delete the saved position of a named consumer."""


@consumer.command()
@_log
@_consumer
@metadata_option
@click.option(
    "--to", "position", type=PositionParam(), required=True, help="Offset, `earliest`, `latest`, or a time such as 2026-11-26T12:00:00Z."
)
@click.option("--create", is_flag=True, help="Make CONSUMER if it does not exist.")
@_force
def reset(name: str, consumer: str, metadata: str | None, position: Position, create: bool, force: bool) -> None:
    """Let CONSUMER of LOG go on at another position."""

    async def work(logs: Logs) -> None:
        offset = await logs.reset_consumer(name, consumer, position, force=force, create=create)
        remarks.print(f"consumer {consumer} of log {name} goes on at offset {offset}")

    run_with_logs(metadata, work)


@consumer.command()
@_log
@_consumer
@metadata_option
@_force
def delete(name: str, consumer: str, metadata: str | None, force: bool) -> None:
    """Forget CONSUMER of LOG and its position."""

    async def work(logs: Logs) -> None:
        await logs.delete_consumer(name, consumer, force=force)
        remarks.print(f"consumer {consumer} of log {name} is forgotten")

    run_with_logs(metadata, work)
