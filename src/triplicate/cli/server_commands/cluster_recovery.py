"""``triplicate cluster recover`` and ``under-replicated``: make lost copies again, and list the ledgers that lack copies."""

from __future__ import annotations

import dataclasses
import datetime
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from triplicate.autorecovery import LedgerNeed, PassReport, recover_bookies
from triplicate.cli.overview.cluster_sources import progress_of
from triplicate.cli.overview.core.cluster_facts import ProgressFacts
from triplicate.cli.overview.core.status_screen import progress_text
from triplicate.cli.overview.core.text_table import size_text
from triplicate.cli.overview.pass_lines import PassLines
from triplicate.cli.server_commands.cluster_misplaced import recover_misplaced, repair_facts
from triplicate.cli.terminal.client_run import run_with_client
from triplicate.cli.terminal.options import FiniteRange, client_settings, metadata_option
from triplicate.cli.terminal.output import print_json, print_table, remarks
from triplicate.client import Client
from triplicate.config import AutorecoverySettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import FormatError
from triplicate.log import Logs, has_living_writer
from triplicate.metadata import UnderreplicatedLedger

MISPLACED = "none: misplaced"
"""Stands for the missing bookies of a mark without any."""

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@click.argument("bookie_ids", metavar="[BOOKIE_ID]...", nargs=-1)
@metadata_option
@click.option("--dry-run", is_flag=True, help="Change nothing, and list what would be copied.")
@click.option("--rate", "rate_mb", type=FiniteRange(min=0), help="Megabytes per second to copy at most; 0 sets no limit.")
@click.option("--misplaced", is_flag=True, help="Move copies that break the rules of placement, and do nothing else.")
@_json
def recover(
    bookie_ids: tuple[str, ...], metadata: str | None, dry_run: bool, rate_mb: float | None, misplaced: bool, as_json: bool
) -> None:
    """Make the copies of lost bookies again on other bookies, and repair every ledger that is marked as under-replicated.

    Lost bookies are those that have a cookie or are named by a ledger, and are not registered. If BOOKIE_IDs are given, only these are
    lost; one that is registered as read-only is emptied, and a writable one is refused. Copies are verified before the metadata names
    them. An open ledger is fenced only if it does not change during `autorecovery.open_ledger_grace_s`, and is not that of a log whose
    writer lives.

    With --misplaced, the copies of ledgers whose ensembles break the rules of placement (`client.placement_policy` of this command) move to
    bookies that mend the placement, as few as possible. The last segment of an open ledger is left to its writer.

    Ledgers that cannot be repaired stay marked and are listed; the exit code is then 1. An interrupted pass can be started again.
    """
    if misplaced and bookie_ids:
        raise click.UsageError("--misplaced regards all ledgers; give no BOOKIE_ID with it")
    settings = client_settings(AutorecoverySettings)
    if rate_mb is not None:
        settings = dataclasses.replace(settings, bytes_per_s=int(rate_mb * 1_000_000))
    if misplaced:
        recover_misplaced(partial(run_with_client, metadata), settings, PassLines().progress, dry_run=dry_run, as_json=as_json)
        return
    reports: list[PassReport] = []

    async def work(client: Client) -> None:
        lines = PassLines()
        started = time.monotonic()
        logs = Logs(client, client_settings(LogClientSettings))
        report = await recover_bookies(
            client,
            bookie_ids,
            settings=settings,
            dry_run=dry_run,
            has_living_writer=partial(has_living_writer, logs),
            progress=lines.progress,
        )
        reports.append(report)
        seconds = time.monotonic() - started
        if as_json:
            print_json(_facts(report, dry_run=dry_run, seconds=seconds))
        elif dry_run:
            _print_needs(report)
        else:
            _print_repairs(report, seconds)

    run_with_client(metadata, work)
    if any(report.unrepaired or report.unreadable for report in reports):
        sys.exit(1)


@click.command("under-replicated")
@metadata_option
@click.option("--missing-on", "bookie_id", metavar="BOOKIE_ID", help="Only ledgers that lack copies on this bookie.")
@_json
def under_replicated(metadata: str | None, bookie_id: str | None, as_json: bool) -> None:
    """List the ledgers that are marked because they lack copies, and those with recorded damaged copies.

    The list shows the missing bookies, the number of damaged entries on each bookie, since when, the worker that has locked the ledger, how
    far and how fast its repair is, and why the last one did not end well. A mark without bookies is one for placement: the ledger has its
    copies, and some are to be moved.
    """

    async def work(client: Client) -> None:
        listed = await lacking_ledgers(client, bookie_id)
        if as_json:
            print_json(listed)
        elif listed:
            headings = ("ledger", "missing bookies", "damaged entries", "since", "locked by", "copied", "reason")
            print_table(headings, [_lacking_cells(row) for row in listed], right=("ledger",))
        else:
            where = f" for bookie {bookie_id}" if bookie_id is not None else ""
            remarks.print(f"no ledger is marked as under-replicated{where}, and no damaged copy is recorded")

    run_with_client(metadata, work)


async def lacking_ledgers(client: Client, bookie_id: str | None = None) -> list[dict[str, Any]]:
    """The ledgers that are marked or have recorded damaged copies, by ascending id.

    Args:
        bookie_id: only ledgers that lack copies on this bookie; None for all.
    """
    marks, records = client.metadata.under_replication, client.metadata.damaged_copies
    found = {mark.ledger_id: mark async for mark in marks.marks()}
    listed: list[dict[str, Any]] = []
    for ledger_id in sorted({*found, *await records.ledger_ids()}):
        mark, reason = found.get(ledger_id), await _reason(client, ledger_id)
        damaged: dict[str, int] = {}
        try:
            record = await records.get(ledger_id)
        except FormatError as error:
            record, reason = None, reason or str(error)
        if record is not None:
            damaged = {name: sum(map(len, runs)) for name, runs in record.copies.items()}
        elif mark is None and reason is None:
            continue  # Repaired since the list was read.
        if bookie_id is None or bookie_id in damaged or (mark is not None and bookie_id in mark.missing):
            worker = await marks.worker_of(ledger_id)
            progress = None if worker is None else await progress_of(client, ledger_id)
            listed.append(_lacking_facts(ledger_id, mark, damaged, worker, reason, progress))
    return listed


def _lacking_cells(row: Mapping[str, Any]) -> tuple[object, ...]:
    return (
        row["ledger"],
        MISPLACED if row["cause"] == "placement" else ", ".join(row["missing"]) or "-",
        _damage_text(row["damaged"]),
        row["since"] or "-",
        row["locked_by"] or "-",
        progress_text(None if row["progress"] is None else ProgressFacts(**row["progress"])),
        row["reason"] or "-",
    )


def _damage_text(damaged: Mapping[str, int]) -> str:
    return ", ".join(f"{count} on {name}" for name, count in damaged.items()) or "-"


async def _reason(client: Client, ledger_id: int) -> str | None:
    try:
        note = await client.metadata.repair_notes.get(ledger_id)
    except FormatError as error:
        return str(error)
    return None if note is None else note.reason


def _lacking_facts(
    ledger_id: int,
    mark: UnderreplicatedLedger | None,
    damaged: Mapping[str, int],
    worker: str | None,
    reason: str | None,
    progress: ProgressFacts | None,
) -> dict[str, Any]:
    since = None
    if mark is not None and mark.ctime_ms is not None:
        since = datetime.datetime.fromtimestamp(mark.ctime_ms / 1000, datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    missing = list(mark.missing) if mark is not None else []
    cause = "damage" if mark is None else "copies" if missing else "placement"
    facts = {"ledger": ledger_id, "cause": cause, "missing": missing, "damaged": dict(damaged)}
    shown = None if progress is None else dataclasses.asdict(progress)
    return facts | {"since": since, "locked_by": worker, "reason": reason, "progress": shown}


def _print_needs(report: PassReport) -> None:
    remarks.print(f"lost bookies: {', '.join(report.lost) or 'none'}")
    if report.needs:
        headings = ("ledger", "missing bookies", "fragments", "entries", "size (estimate)", "remark")
        rows = [(*_need_row(need), "open: recovered after the grace period" if need.awaits_recovery else "") for need in report.needs]
        print_table(headings, rows, right=("ledger", "fragments", "entries", "size (estimate)"))
    _print_unreadable(report)


def _need_row(need: LedgerNeed) -> tuple[object, ...]:
    return need.ledger_id, ", ".join(need.missing), need.fragments, need.entries, size_text(need.size_bytes)


def _print_repairs(report: PassReport, seconds: float) -> None:
    size_bytes = sum(repair.size_bytes for repair in report.repairs)
    entries = sum(repair.entries for repair in report.repairs)
    click.echo(
        f"lost bookies: {', '.join(report.lost) or 'none'}; {len(report.repairs) - len(report.unrepaired)} of {len(report.repairs)} "
        f"ledgers have their copies; {entries} entries, {size_text(size_bytes)} copied in {seconds:.1f} s "
        f"({size_text(size_bytes / max(seconds, 0.001))}/s)"
    )
    if report.unrepaired:
        rows = [(repair.ledger_id, repair.outcome.value, repair.reason) for repair in report.unrepaired]
        print_table(("ledger", "outcome", "reason"), rows, right=("ledger",))
    _print_unreadable(report)


def _print_unreadable(report: PassReport) -> None:
    for ledger_id, reason in report.unreadable.items():
        remarks.print(f"ledger {ledger_id} was not examined: {reason}")


def _facts(report: PassReport, *, dry_run: bool, seconds: float) -> dict[str, Any]:
    return {
        "lost": list(report.lost),
        "dry_run": dry_run,
        "seconds": round(seconds, 3),
        "needs": [dataclasses.asdict(need) for need in report.needs],
        "unreadable": {str(ledger_id): reason for ledger_id, reason in report.unreadable.items()},
        "repairs": [repair_facts(repair) for repair in report.repairs],
        "unrepaired": [repair.ledger_id for repair in report.unrepaired],
    }
