"""``triplicate bookie refill``: copies the lost entries of a bookie with replaced disks back to it."""

from __future__ import annotations

import dataclasses
import sys
from functools import partial
from typing import Any

import click

from triplicate.autorecovery import RefillReport, refill_bookie
from triplicate.cli.overview.core.text_table import size_text
from triplicate.cli.overview.pass_lines import PassLines
from triplicate.cli.process.serving import run_loop
from triplicate.cli.server_commands.bookie_list import uri_of
from triplicate.cli.terminal.client_run import client_of
from triplicate.cli.terminal.options import FiniteRange, client_settings, metadata_option
from triplicate.cli.terminal.output import print_json, print_table
from triplicate.config import AutorecoverySettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.log import Logs, has_living_writer


@click.command("refill")
@click.argument("bookie_id", metavar="BOOKIE_ID")
@metadata_option
@click.option("--rate", "rate_mb", type=FiniteRange(min=0), help="Megabytes per second to copy at most; 0 sets no limit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def refill(context: click.Context, bookie_id: str, metadata: str | None, rate_mb: float | None, as_json: bool) -> None:
    """Copy the entries that a bookie with replaced disks has lost back to it, and end its limbo when all are there.

    The bookie runs, after `triplicate bookie format --replace`. Ledgers that cannot be refilled yet are listed, the bookie stays in limbo,
    and the exit code is 1; run the command again. It copies only what is missing.

    The command waits for ledgers that workers repair, and for entries of living writers of logs (`autorecovery.refill_wait_s`).
    """
    settings = client_settings(AutorecoverySettings)
    if rate_mb is not None:
        settings = dataclasses.replace(settings, bytes_per_s=int(rate_mb * 1_000_000))
    uri = uri_of(context, metadata)
    progress = PassLines().progress

    async def body() -> RefillReport:
        async with client_of(uri, name="bookie-refill") as client:
            logs = Logs(client, client_settings(LogClientSettings))
            return await refill_bookie(
                client, bookie_id, settings=settings, has_living_writer=partial(has_living_writer, logs), progress=progress
            )

    report = run_loop(body())
    if as_json:
        print_json(facts_of(report))
    else:
        _print_report(report)
    if not report.complete:
        sys.exit(1)


def facts_of(report: RefillReport) -> dict[str, Any]:
    """The report for programs."""
    return {
        "bookie": report.bookie_id,
        "was_in_limbo": report.was_in_limbo,
        "complete": report.complete,
        "entries": sum(repair.entries for repair in report.repairs),
        "size_bytes": sum(repair.size_bytes for repair in report.repairs),
        "left": [{"ledger": ledger_id, "reason": reason} for ledger_id, reason in left_of(report)],
    }


def left_of(report: RefillReport) -> list[tuple[int, str]]:
    """The ledgers that are not refilled, ascending, with the reason."""
    left = [(repair.ledger_id, repair.reason or repair.outcome.value) for repair in report.unrepaired]
    return sorted([*left, *report.blocked])


def _print_report(report: RefillReport) -> None:
    if not report.was_in_limbo:
        click.echo(f"bookie {report.bookie_id} is not in limbo")
        return
    facts = facts_of(report)
    state = "complete, and out of limbo" if report.complete else "still in limbo"
    click.echo(
        f"bookie {report.bookie_id} is {state}: {len(report.repairs)} ledgers, {facts['entries']} entries, "
        f"{size_text(facts['size_bytes'])} copied"
    )
    if not report.complete:
        print_table(("ledger", "reason"), left_of(report), right=("ledger",))
