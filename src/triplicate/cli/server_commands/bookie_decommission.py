"""``triplicate bookie decommission``: move all ledgers off bookies and remove them from the cluster."""

from __future__ import annotations

import dataclasses
import os
import socket
import sys
import time
from functools import partial
from typing import Any

import click

from triplicate.autorecovery import DecommissionProgress, DecommissionReport, Obstacle, decommission_bookie
from triplicate.cli.overview.core.text_table import size_text
from triplicate.cli.overview.pass_lines import room_text
from triplicate.cli.process.serving import run_loop
from triplicate.cli.server_commands.bookie_list import uri_of
from triplicate.cli.terminal.client_run import client_of
from triplicate.cli.terminal.options import FiniteRange, client_settings, limit_option, metadata_option
from triplicate.cli.terminal.output import print_json, print_table, remarks
from triplicate.config import AutorecoverySettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.log import Logs, has_living_writer

REMARK_S = 2.0
"""Least time between two lines of progress on a terminal, in seconds."""
REMARK_WITHOUT_TERMINAL_S = 60.0
"""The same where standard error is a file or a pipe."""
NAMED_MAX = 5
"""Ledgers that a line of progress names."""
ROWS_MAX = 50
"""Ledgers that a table lists; JSON has all."""


@click.command()
@click.argument("bookie_ids", metavar="BOOKIE_ID...", nargs=-1, required=True)
@metadata_option
@click.option("--dry-run", is_flag=True, help="Change nothing; say whether enough bookies would remain, and which ledgers would be moved.")
@click.option("--rate", "rate_mb", type=FiniteRange(min=0), help="Megabytes per second to copy at most; 0 sets no limit.")
@limit_option("Longest time to wait without progress, for example for writers that do not leave.", 3600.0, most_s=604_800)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def decommission(
    context: click.Context,
    bookie_ids: tuple[str, ...],
    metadata: str | None,
    dry_run: bool,
    rate_mb: float | None,
    limit_s: float,
    as_json: bool,
) -> None:
    """Take bookies out of the cluster for good. They may be running or dead.

    They become read-only, every ledger that names them gets verified copies on others, and their cookies are removed after a verdict: no
    ledger names them, and others hold every entry that they list. Nothing is changed if too few bookies would remain, by number or by the
    rules of placement, or if their free disk cannot hold the copies. Writers leave by themselves; an open ledger is fenced only if it does
    not change during `autorecovery.open_ledger_grace_s`, and is not that of a log whose writer lives.

    Interrupted, it goes on when it is started again; `triplicate bookie set-readonly BOOKIE_ID off` gives it up. Exit code 0: removed (or,
    with --dry-run, enough bookies would remain). 1: refused, or something could not be moved; the ledgers are listed.
    """
    settings = client_settings(AutorecoverySettings)
    if rate_mb is not None:
        settings = dataclasses.replace(settings, bytes_per_s=int(rate_mb * 1_000_000))
    lines = ProgressLines(time.monotonic())
    started = time.monotonic()

    async def body() -> DecommissionReport:
        # The name stands in the locks of ledgers that are being moved.
        name = f"{socket.gethostname()}:{os.getpid()}"
        async with client_of(uri_of(context, metadata), name=name) as client:
            return await decommission_bookie(
                client,
                bookie_ids,
                settings=settings,
                dry_run=dry_run,
                stall_s=limit_s,
                has_living_writer=partial(has_living_writer, Logs(client, client_settings(LogClientSettings))),
                progress=lines.progress,
            )

    report = run_loop(body())
    seconds = time.monotonic() - started
    if as_json:
        print_json({**facts_of(report), "dry_run": dry_run, "seconds": round(seconds, 3)})
    else:
        print_report(report, seconds, dry_run=dry_run)
    if report.is_refused or not (report.is_removed or dry_run):
        sys.exit(1)


class ProgressLines:
    """Writes the progress to standard error: at once when a part begins for the first time, and otherwise once in a while.

    While something is awaited, moves and verdicts alternate twice a second, so a part that comes again is no news.
    """

    def __init__(self, now: float) -> None:
        self.progress = DecommissionProgress(on_change=self._changed)
        self._started = self._said = now
        self._pause_s = REMARK_S if sys.stderr.isatty() else REMARK_WITHOUT_TERMINAL_S
        self._begun = {self.progress.phase}

    def _changed(self) -> None:
        now, phase = time.monotonic(), self.progress.phase
        if now - self._said >= self._pause_s or phase not in self._begun:
            self._said = now
            self._begun.add(phase)
            remarks.print(progress_line(self.progress, now - self._started))


def progress_line(progress: DecommissionProgress, seconds: float) -> str:
    """The part that runs, the ledgers, bytes, rate and remaining time after some seconds, and what blocks."""
    parts = [progress.phase.value]
    if progress.ledgers_left or progress.bytes_copied:
        rate = progress.bytes_copied / max(seconds, 0.001)
        parts.append(f"{progress.ledgers_left} ledgers left{_named(list(progress.moving))}")
        parts.append(f"{size_text(progress.bytes_copied)} copied, {size_text(rate)}/s")
        if progress.bytes_left and rate > 0:
            parts.append(f"about {progress.bytes_left / rate:.0f} s left")
    if progress.obstacles:
        first = progress.obstacles[0]
        more = f" (and {len(progress.obstacles) - 1} more ledgers)" if len(progress.obstacles) > 1 else ""
        parts.append(f"blocked by ledger {first.ledger_id}: {first.reason}{more}")
    return "; ".join(parts)


def _named(ledger_ids: list[int]) -> str:
    if not ledger_ids:
        return ""
    more = ", …" if len(ledger_ids) > NAMED_MAX else ""
    return f", now {', '.join(map(str, ledger_ids[:NAMED_MAX]))}{more}"


def print_report(report: DecommissionReport, seconds: float, *, dry_run: bool) -> None:
    """The result for people."""
    names = ", ".join(report.bookies)
    if report.room is not None and report.room.is_doubtful and not report.is_refused:
        remarks.print(f"the disks may be too small: {room_text(report.room)}")
    remaining = f"{report.remaining_bookies} writable bookies on {report.remaining_machines} machines would remain"
    if report.refused:
        ledgers = len({one.ledger_id for one in report.refused})
        click.echo(f"refused, and nothing was changed: {remaining} without {names}, too few for {ledgers} ledgers")
        headings = ("ledger", "from entry", "stays on", "needed", "there", "reason")
        rows = [
            (one.ledger_id, one.first_entry_id, ", ".join(one.kept) or "none", one.needed, one.there, one.reason)
            for one in report.refused[:ROWS_MAX]
        ]
        print_table(headings, rows, right=("ledger", "from entry", "needed", "there"))
        _print_rest(len(report.refused))
    elif report.room is not None and report.room.is_too_small:
        click.echo(f"refused, and nothing was changed: {room_text(report.room)}; add bookies or disks, or delete what is not needed")
    elif dry_run:
        size_bytes = sum(need.size_bytes for need in report.needs)
        click.echo(
            f"{names} can be decommissioned: {remaining}; {len(report.needs)} ledgers, about {size_text(size_bytes)}, would be moved"
        )
    elif report.is_removed:
        click.echo(
            f"{names} decommissioned in {seconds:.1f} s: {report.entries} entries, {size_text(report.size_bytes)} of {report.ledgers} "
            f"ledgers moved; no ledger of {report.ledgers_checked} names it, and others hold the {report.entries_checked} entries it lists"
        )
        if report.running:
            click.echo(f"{', '.join(report.running)} still runs, as read-only: stop it; then its disks can be wiped")
        else:
            click.echo("its disks can be wiped")
    else:
        click.echo(f"{names} is not decommissioned, and its cookie stays; start the command again to go on")
        print_table(("ledger", "waits", "reason"), [_obstacle_row(one) for one in report.obstacles[:ROWS_MAX]], right=("ledger",))
        _print_rest(len(report.obstacles))


def _obstacle_row(obstacle: Obstacle) -> tuple[object, ...]:
    return obstacle.ledger_id, "yes" if obstacle.may_pass else "no", obstacle.reason


def _print_rest(count: int) -> None:
    if count > ROWS_MAX:
        remarks.print(f"and {count - ROWS_MAX} more; --json lists all")


def facts_of(report: DecommissionReport) -> dict[str, Any]:
    """The result for JSON."""
    facts = dataclasses.asdict(report)
    facts["removed"] = facts.pop("is_removed")
    return facts
