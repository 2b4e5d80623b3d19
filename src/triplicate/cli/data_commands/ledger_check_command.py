"""``triplicate ledger check``: which copies of a ledger exist."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import click

from triplicate.autorecovery import (
    HasLivingWriter,
    LedgerChecker,
    LedgerCopies,
    LedgerRepair,
    RepairOutcome,
    mark_copies,
    mend_ledger,
)
from triplicate.cli.overview.core.text_table import size_text
from triplicate.cli.overview.pass_lines import PassLines
from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.client_run import client_of
from triplicate.cli.terminal.options import FiniteRange, client_settings, cluster_uri, limit_option, metadata_option
from triplicate.cli.terminal.output import ProgressBar, print_json, print_table, remarks
from triplicate.client import Client
from triplicate.config import AutorecoverySettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.log import Logs, has_living_writer

DONE = (RepairOutcome.REPAIRED, RepairOutcome.NOT_MARKED)
"""Outcomes of a repair after which the ledger lacks nothing. Without a mark, another worker was quicker."""
RANGES_MAX = 5
"""Ranges of entries that a line names; JSON has all."""


@dataclass(frozen=True, slots=True)
class CheckedLedger:
    """The result of the command.

    Args:
        copies: as they are in the end.
        marked: the bookies of the mark that was made.
        before: as they were before the repair; None if none was wanted.
        repair: None if none was wanted, or nothing was to be repaired.
    """

    copies: LedgerCopies
    marked: tuple[str, ...] = ()
    before: LedgerCopies | None = None
    repair: LedgerRepair | None = None

    @property
    def is_good(self) -> bool:
        """Whether every copy is there, and a repair has ended well."""
        return self.copies.is_complete and (self.repair is None or self.repair.outcome in DONE)


@click.command("check")
@click.argument("ledger_id", metavar="LEDGER", type=click.IntRange(min=0))
@metadata_option
@click.option("--read", is_flag=True, help="Read every copy and verify its digest, instead of trusting the bookies' lists of entries.")
@click.option(
    "--mark", is_flag=True, help="Mark the ledger as under-replicated if copies are missing or damaged, so that auto-recovery repairs it."
)
@click.option(
    "--repair",
    is_flag=True,
    help="Make missing copies again now, with --read also damaged ones, as a worker does; then check again.",
)
@click.option("--rate", "rate_mb", type=FiniteRange(min=0), help="Megabytes per second that --repair copies at most; 0: no limit.")
@limit_option("Longest time to wait for each answer of a bookie.")
@click.option(
    "--password",
    default="",
    envvar="TRIPLICATE_LEDGER_PASSWORD",
    help="Needed only for ledgers of old releases, whose metadata has no password.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(
    ledger_id: int,
    metadata: str | None,
    read: bool,
    mark: bool,
    repair: bool,
    rate_mb: float | None,
    limit_s: float,
    password: str,
    as_json: bool,
) -> None:
    """Check each copy of each entry of LEDGER on each bookie that should store it.

    Bookies list their entries; --read also reads every copy and verifies its digest. The ledger is not fenced and does not change. An open
    ledger is checked up to its last-add-confirmed. Exit code 0: every copy is there. 1: a copy is missing or damaged, or a bookie did not
    answer.

    With --repair the ledger is marked, locked and repaired as by a replication worker: copies are read from bookies that have them,
    verified, stored and listed before the metadata change. Where a bookie of the last segment of an open ledger is lost, the ledger is
    fenced only if its writer is gone. An entry without a good copy is named and stays marked, and nothing is changed; the exit code is 1.
    """
    if rate_mb is not None and not repair:
        raise click.UsageError("--rate limits the copies of --repair; give both, or none")
    if mark and repair:
        raise click.UsageError("--repair marks the ledger itself; give --mark or --repair")
    settings = client_settings(AutorecoverySettings)
    if rate_mb is not None:
        settings = replace(settings, bytes_per_s=int(rate_mb * 1_000_000))

    async def checked_copies(client: Client) -> LedgerCopies:
        with ProgressBar("copies read", None) as bar:
            return await LedgerChecker(client, ledger_id, limit_s, read=read, progress=bar.advance).check(password.encode())

    async def body() -> CheckedLedger:
        # The name stands in the lock of the ledger while it is repaired.
        async with client_of(cluster_uri(metadata)) as client:
            if not repair:
                found = await checked_copies(client)
                return CheckedLedger(found, await mark_copies(client, found) if mark else ())
            writers: HasLivingWriter = partial(has_living_writer, Logs(client, client_settings(LogClientSettings)))
            check_copies, progress = partial(checked_copies, client), PassLines().progress
            mended = await mend_ledger(client, check_copies, settings=settings, has_living_writer=writers, progress=progress)
            return CheckedLedger(mended.after, mended.marked, mended.before, mended.repair)

    checked = run_loop(body())
    if as_json:
        print_json(_facts(checked))
    else:
        _print(checked)
    sys.exit(0 if checked.is_good else 1)


def _facts(checked: CheckedLedger) -> dict[str, Any]:
    facts = {**_copies_facts(checked.copies), "marked": list(checked.marked)}
    if checked.before is not None:
        facts["before"] = _copies_facts(checked.before)
        facts["repair"] = None if checked.repair is None else _repair_facts(checked.repair)
    return facts


def _repair_facts(repair: LedgerRepair) -> dict[str, Any]:
    return {
        "outcome": repair.outcome.value,
        "reason": repair.reason or None,
        "entries": repair.entries,
        "bytes": repair.size_bytes,
        "copies": [asdict(made) for made in repair.made],
    }


def _copies_facts(copies: LedgerCopies) -> dict[str, Any]:
    return {
        "ledger_id": copies.ledger_id,
        "complete": copies.is_complete,
        "closed": copies.is_closed,
        "last_entry_id": copies.last_entry_id,
        "without_copy": _pairs(copies.without_copy),
        "bookies": [
            {
                "bookie_id": one.bookie_id,
                "expected": one.expected,
                "has": one.has,
                "lacks": one.lacks,
                "missing": _pairs(one.missing),
                "bad": list(one.bad),
                "silence": one.silence or None,
            }
            for one in copies.bookies
        ],
    }


def _pairs(runs: Sequence[range]) -> list[list[int]]:
    """First and last entry of each range."""
    return [[run.start, run.stop - 1] for run in runs]


def _print(checked: CheckedLedger) -> None:
    if checked.before is not None and checked.repair is not None:
        _print_copies(checked.before)
        _print_repair(checked.repair)
    _print_copies(checked.copies)
    if checked.before is not None and checked.repair is None:
        silent = "; bookies did not answer, and are registered" if not checked.copies.is_complete else ""
        remarks.print(f"nothing is to be repaired{silent}")
    elif checked.marked and checked.repair is None:
        remarks.print(f"marked as under-replicated on {', '.join(checked.marked)}")


def _print_repair(repair: LedgerRepair) -> None:
    for made in repair.made:
        place = "which lacked them" if made.target == made.replaced else f"in the place of {made.replaced}"
        segment = f"the segment {made.first_entry_id} to {made.last_entry_id}"
        click.echo(f"copied {made.entries} entries ({size_text(made.size_bytes)}) of {segment} to {made.target}, {place}")
    if repair.outcome in DONE:
        click.echo("repaired" if repair.outcome is RepairOutcome.REPAIRED else "another worker has repaired it")
    else:
        click.echo(f"not repaired, and still marked: {repair.reason or repair.outcome.value}")


def _print_copies(copies: LedgerCopies) -> None:
    rows = [
        (
            one.bookie_id,
            one.expected,
            "?" if one.silence else one.has,
            "?" if one.silence else one.lacks,
            "?" if one.silence else len(one.bad),
            one.silence or _named([*one.missing, *(range(entry_id, entry_id + 1) for entry_id in one.bad)]),
        )
        for one in copies.bookies
    ]
    headings = ("bookie", "should store", "has", "lacks", "bad", "entries, or why it did not answer")
    print_table(headings, rows, right=headings[1:5])
    count = copies.last_entry_id + 1
    state = f"{count} entries, closed" if copies.is_closed else f"open, and its first {count} entries are known as confirmed"
    verdict = "every copy of them is there" if copies.is_complete else "copies are missing, damaged or unknown"
    click.echo(f"ledger {copies.ledger_id}: {state}; {verdict}")
    if copies.without_copy:
        silent = any(one.silence and one.expected for one in copies.bookies)
        where = "no bookie that answered" if silent else "no bookie"
        click.echo(f"{where} has a good copy of entries {_named(copies.without_copy)}")


def _named(runs: Sequence[range]) -> str:
    named = [f"{run.start}" if len(run) == 1 else f"{run.start} to {run.stop - 1}" for run in runs[:RANGES_MAX]]
    rest = len(runs) - RANGES_MAX
    return ", ".join(named) + (f" and {rest} more ranges" if rest > 0 else "")
