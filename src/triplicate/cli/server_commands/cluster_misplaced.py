"""``triplicate cluster recover --misplaced``: move the copies of ledgers that break the rules of placement."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import click

from triplicate.autorecovery import LedgerRepair, MisplacedLedger, MisplacedReport, PassProgress, move_misplaced
from triplicate.cli.overview.core.text_table import size_text
from triplicate.cli.terminal.output import print_json, print_table, remarks
from triplicate.client import Client
from triplicate.config import AutorecoverySettings

RunWithClient = Callable[[Callable[[Client], Awaitable[None]]], None]


def recover_misplaced(run: RunWithClient, settings: AutorecoverySettings, progress: PassProgress, *, dry_run: bool, as_json: bool) -> None:
    """Run the pass and print its report. Exits with 1 if a ledger was refused, could not be mended or could not be read.

    Args:
        run: calls its argument with a client of the cluster.
    """
    reports: list[MisplacedReport] = []

    async def work(client: Client) -> None:
        started = time.monotonic()
        report = await move_misplaced(client, settings=settings, dry_run=dry_run, progress=progress)
        reports.append(report)
        if as_json:
            print_json(_facts(report, dry_run=dry_run, seconds=time.monotonic() - started))
        else:
            _print(report, dry_run=dry_run, seconds=time.monotonic() - started)

    run(work)
    if any(report.refused or report.unrepaired or report.unreadable for report in reports):
        sys.exit(1)


def _print(report: MisplacedReport, *, dry_run: bool, seconds: float) -> None:
    movable = [one for one in report.misplaced if one.fragments]
    if dry_run:
        click.echo(f"{report.ledgers} ledgers; copies of {len(movable)} would be moved")
    else:
        size_bytes = sum(repair.size_bytes for repair in report.repairs)
        mended = len(report.repairs) - len(report.unrepaired)
        click.echo(
            f"{report.ledgers} ledgers; {mended} of {len(report.repairs)} misplaced ledgers are mended, {size_text(size_bytes)} copied in "
            f"{seconds:.1f} s"
        )
    if movable and dry_run:
        headings = ("ledger", "fragments", "entries", "size (estimate)", "to", "reason")
        rows = [
            (one.ledger_id, one.fragments, one.entries, size_text(one.size_bytes), ", ".join(one.targets), "; ".join(one.reasons))
            for one in movable
        ]
        print_table(headings, rows, right=headings[:4])
    stay = [(one.ledger_id, "refused", "; ".join(one.refused)) for one in report.refused]
    stay += [(one.ledger_id, "open", _open_remark(one)) for one in report.misplaced if one.open_segment]
    stay += [(repair.ledger_id, repair.outcome.value, repair.reason) for repair in report.unrepaired]
    if stay:
        print_table(("ledger", "stays", "reason"), stay, right=("ledger",))
    for ledger_id in report.unreadable:
        remarks.print(f"ledger {ledger_id} was not examined: its metadata cannot be decoded")


def _open_remark(one: MisplacedLedger) -> str:
    return f"{one.open_segment}; its last segment is left to its writer until the ledger is closed"


def _facts(report: MisplacedReport, *, dry_run: bool, seconds: float) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "seconds": round(seconds, 3),
        "ledgers": report.ledgers,
        "misplaced": [dataclasses.asdict(one) for one in report.misplaced],
        "unreadable": list(report.unreadable),
        "repairs": [repair_facts(repair) for repair in report.repairs],
        "refused": [one.ledger_id for one in report.refused],
        "unrepaired": [repair.ledger_id for repair in report.unrepaired],
    }


def repair_facts(repair: LedgerRepair) -> dict[str, Any]:
    """One repair, for JSON."""
    return {**dataclasses.asdict(repair), "outcome": repair.outcome.value}
