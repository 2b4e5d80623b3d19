"""``triplicate cluster autorecovery``: the state of auto-recovery in the whole cluster, and its switches."""

from __future__ import annotations

import datetime
from typing import Any

import click

from triplicate.cli.terminal.client_run import run_with_client
from triplicate.cli.terminal.options import metadata_option
from triplicate.cli.terminal.output import print_json, print_table
from triplicate.client import Client
from triplicate.metadata import PeriodicCheck

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("autorecovery")
def autorecovery_group() -> None:
    """Show, disable and enable auto-recovery in the whole cluster, and change the delay of lost bookies.

    The settings are in BookKeeper's own nodes, so that Apache's auditor and workers obey them, too.
    """


@autorecovery_group.command()
@metadata_option
@_json
def status(metadata: str | None, as_json: bool) -> None:
    """Show whether auto-recovery is enabled, the auditor, the candidates, the delay, and when the periodic checks last ended."""

    async def work(client: Client) -> None:
        marks = client.metadata.under_replication
        checks = {check.name.lower(): _time(await marks.check_time_ms(check)) for check in PeriodicCheck}
        facts: dict[str, Any] = {
            "enabled": await marks.is_enabled(),
            "auditor": await client.metadata.auditor.current(),
            "candidates": len(await client.metadata.auditor.candidates()),
            "lost_bookie_delay_s": await marks.lost_bookie_recovery_delay_s(),
            "last_checks": checks,
        }
        if as_json:
            print_json(facts)
            return
        rows: list[tuple[str, object]] = [
            ("enabled", "yes" if facts["enabled"] else "no"),
            ("auditor", facts["auditor"] or "none: no daemon runs"),
            ("candidates", facts["candidates"]),
            ("delay of a lost bookie", "not set" if facts["lost_bookie_delay_s"] is None else f"{facts['lost_bookie_delay_s']} s"),
            *((f"last check: {name.replace('_', ' ')}", time or "never") for name, time in checks.items()),
        ]
        print_table(("auto-recovery", ""), rows)

    run_with_client(metadata, work)


@autorecovery_group.command()
@metadata_option
def disable(metadata: str | None) -> None:
    """Disable auto-recovery, for example before the whole cluster is stopped. Repairs that run are finished."""

    async def work(client: Client) -> None:
        changed = await client.metadata.under_replication.disable()
        click.echo("auto-recovery is disabled" if changed else "auto-recovery was disabled already")

    run_with_client(metadata, work)


@autorecovery_group.command()
@metadata_option
def enable(metadata: str | None) -> None:
    """Enable auto-recovery again."""

    async def work(client: Client) -> None:
        changed = await client.metadata.under_replication.enable()
        click.echo("auto-recovery is enabled" if changed else "auto-recovery was enabled already")

    run_with_client(metadata, work)


@autorecovery_group.command()
@click.argument("seconds", type=click.IntRange(0, 86_400 * 30))
@metadata_option
def delay(seconds: int, metadata: str | None) -> None:
    """Change the time after which the copies of a lost bookie are made again. Auditors follow at once.

    The time counts from the loss, also for bookies that are lost already.
    """

    async def work(client: Client) -> None:
        await client.metadata.under_replication.set_lost_bookie_recovery_delay_s(seconds)
        click.echo(f"the copies of a lost bookie are made again after {seconds} s")

    run_with_client(metadata, work)


def _time(time_ms: int | None) -> str | None:
    if time_ms is None:
        return None
    return datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
