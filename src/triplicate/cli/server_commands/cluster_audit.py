"""``triplicate cluster audit``: run the auditor's checks of all ledgers now."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import click

from triplicate.autorecovery import Audit, AuditorMetrics, AuditReport, CopyPace, LedgerAudits
from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.client_run import client_of
from triplicate.cli.terminal.options import cluster_uri, metadata_option
from triplicate.cli.terminal.output import print_json, print_table, remarks
from triplicate.metadata import PeriodicCheck

ROWS_MAX = 50
"""Findings of one check that the table lists; JSON has all that the report has."""

CHECKS = {
    Audit.LEDGERS: PeriodicCheck.ALL_LEDGERS,
    Audit.REPLICAS: PeriodicCheck.REPLICAS,
    Audit.PLACEMENT: PeriodicCheck.PLACEMENT_POLICY,
}


@click.command("audit")
@metadata_option
@click.option("--lost", "lost", is_flag=True, help="Find ledgers that name bookies that are not registered; there is no delay.")
@click.option("--ledgers", "ledgers", is_flag=True, help="Read the first and last entry of each fragment from its bookie.")
@click.option("--replicas", "replicas", is_flag=True, help="Compare all copies with the lists of entries of the bookies.")
@click.option("--placement", "placement", is_flag=True, help="Compare the ensembles with the rules of placement; nothing is marked.")
@click.option("--dry-run", is_flag=True, help="Mark nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def audit(metadata: str | None, lost: bool, ledgers: bool, replicas: bool, placement: bool, dry_run: bool, as_json: bool) -> None:
    """Run the auditor's checks of all ledgers now, and mark ledgers that lack copies as under-replicated.

    Without an option all four checks run. The workers of auto-recovery, or `triplicate cluster recover`, make the copies. The checks also
    run while auto-recovery is disabled. Exit code 0: nothing is found. 1: ledgers are listed, or could not be examined.
    """
    chosen = {Audit.LOST: lost, Audit.LEDGERS: ledgers, Audit.REPLICAS: replicas, Audit.PLACEMENT: placement}
    wanted = [one for one, is_wanted in chosen.items() if is_wanted] or list(chosen)

    async def body() -> list[AuditReport]:
        async with client_of(cluster_uri(metadata)) as client:
            audits = LedgerAudits(client, CopyPace(client.host.clock, 0), AuditorMetrics(None), dry_run=dry_run)
            reports: list[AuditReport] = []
            for one in wanted:
                reports.append(await audits.run(one))
                if one in CHECKS and not dry_run:
                    await client.metadata.under_replication.set_check_time_ms(CHECKS[one], client.host.clock.wall_us() // 1000)
            return reports

    reports = run_loop(body())
    if as_json:
        print_json([_facts(report) for report in reports])
    else:
        for report in reports:
            _print(report, dry_run=dry_run)
    sys.exit(1 if any(report.found or report.unexamined for report in reports) else 0)


def _print(report: AuditReport, *, dry_run: bool) -> None:
    verb = "found" if dry_run or report.audit is Audit.PLACEMENT else "marked"
    click.echo(f"{report.audit.value}: {report.ledgers} ledgers, {report.found} {verb}, {report.unexamined} not examined")
    if report.findings:
        rows = [(one.ledger_id, ", ".join(one.bookies) or "-", one.reason) for one in report.findings[:ROWS_MAX]]
        print_table(("ledger", "bookies", "reason"), rows, right=("ledger",))
    if report.found > ROWS_MAX:
        remarks.print(f"and {report.found - ROWS_MAX} more; `triplicate cluster under-replicated` lists marked ledgers")
    for ledger_id, problem in list(report.problems.items())[:ROWS_MAX]:
        remarks.print(f"ledger {ledger_id} was not examined: {problem}")


def _facts(report: AuditReport) -> dict[str, Any]:
    return {
        **dataclasses.asdict(report),
        "audit": report.audit.value,
        "problems": {str(key): text for key, text in report.problems.items()},
    }
