"""``triplicate cluster safe-to-stop``: whether bookies can be stopped now."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import click

from triplicate.autorecovery import walk_ledgers
from triplicate.cli.overview.cluster_sources import ClusterSources
from triplicate.cli.overview.core.cluster_facts import BookieFacts, BookieState, LedgerCounts, LogFacts
from triplicate.cli.overview.core.domain_shortage import missing_domains, site_of
from triplicate.cli.overview.core.stop_verdict import AvailableCopies, HarmedLedger, StopCheck, StopVerdict
from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.client_run import client_of
from triplicate.cli.terminal.options import client_settings, cluster_uri, limit_option, metadata_option
from triplicate.cli.terminal.output import ProgressBar, print_json, print_table, remarks
from triplicate.client import Client
from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ArgumentError, ConnectionLost

ROWS_MAX = 50
"""Harmed ledgers that the table lists; JSON has all."""


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """The verdict with the state of the cluster that it rests on."""

    verdict: StopVerdict
    absent: tuple[str, ...]
    """Bookies that are lost or do not answer already."""
    writable_left: int
    writers: Mapping[int, str] = field(default_factory=dict)
    """Log and writer of harmed ledgers that a log appends to, by ledger."""
    missing_domains: str = ""
    """Why the writable bookies that remain are in too few fault domains; empty if they are not."""


@click.command("safe-to-stop")
@click.argument("bookie_ids", metavar="BOOKIE_ID...", nargs=-1, required=True)
@metadata_option
@limit_option("Longest time to wait for each bookie. A bookie that does not answer counts as absent.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def safe_to_stop(bookie_ids: tuple[str, ...], metadata: str | None, limit_s: float, as_json: bool) -> None:
    """Say whether these bookies can be stopped together now, or which ledgers prevent it.

    Bookies that are absent already, copies that are marked as missing, and disks that were replaced are taken into account. A closed
    ledger needs one copy of each entry; an open one needs its ack quorum, in as many fault domains as the settings of this command
    say (client.placement_min_ack_domains). Exit code 0: they can be stopped. 1: they cannot.
    """

    async def body() -> StopAnswer:
        async with client_of(cluster_uri(metadata)) as client:
            return await judge_stop(client, tuple(dict.fromkeys(bookie_ids)), limit_s)

    answer = run_loop(body())
    if as_json:
        facts = {**dataclasses.asdict(answer), **dataclasses.asdict(answer.verdict), "safe": answer.verdict.is_safe}
        del facts["verdict"]
        print_json(facts)
    else:
        _print(answer)
    sys.exit(0 if answer.verdict.is_safe else 1)


async def judge_stop(client: Client, bookie_ids: Sequence[str], limit_s: float) -> StopAnswer:
    """Judge the stop of bookies by every ledger of the cluster.

    Raises:
        ArgumentError: the cluster does not know one of them.
        ConnectionLost: bookies or marks cannot be read in time. No verdict is possible without them.
    """
    sources = ClusterSources(client, client_settings(LogClientSettings), limit_s)
    bookies = await sources.bookies(await sources.registrations(), LedgerCounts())
    marks = await sources.marks()
    for source, cut in (("bookies", bookies.cut), ("under-replicated ledgers", marks.cut)):
        if cut:
            raise ConnectionLost(f"the {source} cannot be read, so that nothing can be said: {cut}")
    known = {one.bookie_id: one for one in bookies.items}
    for bookie_id in bookie_ids:
        if bookie_id not in known:
            raise ArgumentError(f"the cluster knows no bookie {bookie_id}; there are: {', '.join(known) or 'none'}")
    present = frozenset(name for name, one in known.items() if _is_present(one))
    copies = AvailableCopies(
        present, {one.ledger_id: one.missing for one in marks.items}, {name: one.unsure_below for name, one in known.items()}
    )
    policy = client.placement.policy
    check = StopCheck(bookie_ids, copies, policy, {name: site_of(one) for name, one in known.items()})
    with ProgressBar("ledgers", None) as bar:
        async with aclosing(walk_ledgers(client)) as ledgers:
            async for ledger in ledgers:
                check.add(ledger.ledger_id, ledger.metadata)
                bar.advance()
    verdict = check.verdict()
    logs = (await sources.logs()).items if any(one.is_open for one in verdict.harmed) else ()
    writable = [one for one in bookies.items if one.state is BookieState.WRITABLE and one.bookie_id in present]
    left = [one for one in writable if one.bookie_id not in bookie_ids]
    absent, writers = tuple(sorted(known.keys() - present)), _writers(verdict.harmed, logs)
    return StopAnswer(verdict, absent, len(left), writers, missing_domains(left, policy))


def _is_present(bookie: BookieFacts) -> bool:
    return bookie.state is not BookieState.LOST and not bookie.silence


def _writers(harmed: Sequence[HarmedLedger], logs: Sequence[LogFacts]) -> dict[int, str]:
    open_ledgers = {one.ledger_id for one in harmed if one.is_open}
    return {
        log.open_ledger: f"log {log.name}" + (f", {log.writer}" if log.writer else "")
        for log in logs
        if log.open_ledger is not None and log.open_ledger in open_ledgers
    }


def _print(answer: StopAnswer) -> None:
    verdict = answer.verdict
    names = ", ".join(verdict.bookies)
    absent = f"; absent already: {', '.join(answer.absent)}" if answer.absent else ""
    if verdict.is_safe:
        click.echo(f"yes: {names} can be stopped now; {verdict.concerned} of {verdict.checked} ledgers have copies there{absent}")
    else:
        click.echo(f"no: stopping {names} now harms {len(verdict.harmed)} of {verdict.checked} ledgers{absent}")
        rows = [
            (
                one.ledger_id,
                "open" if one.is_open else "-" if one.harm.value.startswith("unknown") else "closed",
                one.harm.value,
                one.first_entry_id,
                ", ".join(one.left) or "none",
                answer.writers.get(one.ledger_id, "-"),
            )
            for one in verdict.harmed[:ROWS_MAX]
        ]
        headings = ("ledger", "state", "harm", "from entry", "copies left on", "writer")
        print_table(headings, rows, right=("ledger", "from entry"))
        if len(verdict.harmed) > ROWS_MAX:
            remarks.print(f"and {len(verdict.harmed) - ROWS_MAX} more; --json lists all")
    if verdict.single:
        remarks.print(f"{verdict.single} closed ledgers would have one copy of some entries meanwhile")
    if answer.writable_left < verdict.largest_open:
        remarks.print(
            f"writable bookies that would remain: {answer.writable_left}; a new ledger with an ensemble of {verdict.largest_open}, the "
            "largest of an open ledger, cannot be created meanwhile"
        )
    if answer.missing_domains:
        remarks.print(f"while these bookies are stopped, {answer.missing_domains}")
