"""``triplicate ledger check``: which copies of a ledger exist."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from triplicate.autorecovery import LedgerChecker, LedgerCopies, mark_copies
from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.client_run import client_of
from triplicate.cli.terminal.options import cluster_uri, limit_option, metadata_option
from triplicate.cli.terminal.output import ProgressBar, print_json, print_table, remarks

RANGES_MAX = 5
"""Ranges of entries that a line names; JSON has all."""


@dataclass(frozen=True, slots=True)
class CheckedLedger:
    """The copies of a ledger, and the bookies of the mark that was made."""

    copies: LedgerCopies
    marked: tuple[str, ...] = ()


@click.command("check")
@click.argument("ledger_id", metavar="LEDGER", type=click.IntRange(min=0))
@metadata_option
@click.option("--read", is_flag=True, help="Read every copy and verify its digest, instead of trusting the bookies' lists of entries.")
@click.option(
    "--mark", is_flag=True, help="Mark the ledger as under-replicated if copies are missing or damaged, so that auto-recovery repairs it."
)
@limit_option("Longest time to wait for each answer of a bookie.")
@click.option(
    "--password",
    default="",
    envvar="TRIPLICATE_LEDGER_PASSWORD",
    help="Needed only for ledgers of old releases, whose metadata has no password.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(ledger_id: int, metadata: str | None, read: bool, mark: bool, limit_s: float, password: str, as_json: bool) -> None:
    """Check each copy of each entry of LEDGER on each bookie that should store it.

    Bookies list their entries; --read also reads every copy and verifies its digest. The ledger is not fenced and does not change. An open
    ledger is checked up to its last-add-confirmed. Exit code 0: every copy is there. 1: a copy is missing or damaged, or a bookie did not
    answer.
    """

    async def body() -> CheckedLedger:
        async with client_of(cluster_uri(metadata)) as client:
            with ProgressBar("copies read", None) as bar:
                found = await LedgerChecker(client, ledger_id, limit_s, read=read, progress=bar.advance).check(password.encode())
            return CheckedLedger(found, await mark_copies(client, found) if mark else ())

    checked = run_loop(body())
    if as_json:
        print_json(_facts(checked))
    else:
        _print(checked)
    sys.exit(0 if checked.copies.is_complete else 1)


def _facts(checked: CheckedLedger) -> dict[str, Any]:
    copies = checked.copies
    return {
        "ledger_id": copies.ledger_id,
        "complete": copies.is_complete,
        "closed": copies.is_closed,
        "last_entry_id": copies.last_entry_id,
        "without_copy": _pairs(copies.without_copy),
        "marked": list(checked.marked),
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
    copies = checked.copies
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
    if checked.marked:
        remarks.print(f"marked as under-replicated on {', '.join(checked.marked)}")


def _named(runs: Sequence[range]) -> str:
    named = [f"{run.start}" if len(run) == 1 else f"{run.start} to {run.stop - 1}" for run in runs[:RANGES_MAX]]
    rest = len(runs) - RANGES_MAX
    return ", ".join(named) + (f" and {rest} more ranges" if rest > 0 else "")
