"""``triplicate bookie list``: every bookie of a cluster, also those that are lost."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from triplicate.cli.overview.cluster_sources import ClusterSources
from triplicate.cli.overview.core.cluster_facts import UNSTATED_LOCATION, BookieFacts, LedgerCounts, Listed
from triplicate.cli.overview.core.cluster_problems import shared_text
from triplicate.cli.overview.core.text_table import size_text
from triplicate.cli.process.serving import run_loop
from triplicate.cli.server_commands.bookie_command import GroupOptions
from triplicate.cli.terminal.client_run import client_of
from triplicate.cli.terminal.options import client_settings, cluster_uri, limit_option, metadata_option
from triplicate.cli.terminal.output import print_json, print_table, remarks
from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ConnectionLost
from triplicate.runtime import addresses_of

NOT_COUNTED = "not counted"


@dataclasses.dataclass(frozen=True, slots=True)
class BookieList:
    """The bookies of a cluster, and the ledgers that name them."""

    bookies: tuple[BookieFacts, ...]
    ledgers: LedgerCounts
    shared_machines: tuple[tuple[str, ...], ...] = ()
    """Hosts that are one machine by their addresses, in groups."""


@click.command("list")
@metadata_option
@click.option(
    "--quick", is_flag=True, help="Do not count the ledgers of each bookie. A bookie without a cookie is then listed only if it runs."
)
@limit_option("Longest time to wait for each bookie, and to count ledgers.", 60.0, most_s=86400)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_bookies(context: click.Context, metadata: str | None, quick: bool, limit_s: float, as_json: bool) -> None:
    """List the bookies of the cluster with their state, disk space and number of ledgers.

    A bookie is writable, read-only, or lost: not registered, although the cluster has its cookie or ledgers name it. One whose registration
    cannot be decoded is unreadable: it runs, and is not lost. Exit code 1 if a bookie is lost, is unreadable or does not answer.
    """
    found = run_loop(_collect(uri_of(context, metadata), quick, limit_s))
    if as_json:
        listed = [facts_of(one, found.ledgers) for one in found.bookies]
        print_json({"bookies": listed, "ledgers_cut": found.ledgers.cut or None, "shared_machines": found.shared_machines})
    else:
        _print(found)
    if any(one.state == "lost" or one.silence for one in found.bookies):
        context.exit(1)


def uri_of(context: click.Context, metadata: str | None) -> str:
    """The cluster's URI, from the option of the subcommand, that of the group, or the default folder. Raises ConfigError."""
    group = context.find_object(GroupOptions) or GroupOptions(None, {})
    before = group.flags.get("metadata.uri")
    return cluster_uri(metadata or (str(before) if before else None))


async def _collect(uri: str, quick: bool, limit_s: float) -> BookieList:
    async with client_of(uri) as client:
        sources = ClusterSources(client, client_settings(LogClientSettings), limit_s, addresses_of)
        ledgers = LedgerCounts(cut=NOT_COUNTED) if quick else await sources.ledgers()
        found: Listed[BookieFacts] = await sources.bookies(await sources.registrations(), ledgers)
        if found.cut:
            raise ConnectionLost(f"the bookies cannot be listed: {found.cut}")
        return BookieList(found.items, ledgers, await sources.shared_machines(found.items))


def facts_of(one: BookieFacts, ledgers: LedgerCounts) -> dict[str, Any]:
    """A bookie for JSON. Unknown values are None."""
    facts = {**dataclasses.asdict(one), "address": one.address or None, "silence": one.silence or None}
    if one.state == "lost":
        facts["location"] = None
    return {**facts, "ledgers": None if ledgers.cut == NOT_COUNTED else ledgers.by_bookie.get(one.bookie_id, 0)}


def _print(found: BookieList) -> None:
    ledgers = found.ledgers
    rows = []
    for one in found.bookies:
        facts = facts_of(one, ledgers)
        count = facts["ledgers"]
        disk = "-" if one.free_bytes is None or one.total_bytes is None else f"{size_text(one.free_bytes)} of {size_text(one.total_bytes)}"
        remark = "; ".join(
            [
                *([one.silence] if one.silence else []),
                *([] if one.has_cookie else ["no cookie"]),
                *([] if one.visited else ["not visited since its disks were replaced"]),
            ]
        )
        known = "-" if count is None else f"{count}{'+' if ledgers.cut else ''}"
        rows.append((one.bookie_id, one.state, one.address or "-", facts["location"] or "-", one.incarnation, disk, known, remark))
    headings = ("bookie", "state", "address", "location", "incarnation", "disk free", "ledgers", "")
    located = any(one.location != UNSTATED_LOCATION for one in found.bookies)
    kept = [
        place for place, heading in enumerate(headings) if (heading != "location" or located) and (heading or any(row[-1] for row in rows))
    ]
    right = ("incarnation", "disk free", "ledgers")
    print_table([headings[place] for place in kept], [[row[place] for place in kept] for row in rows], right=right)
    if ledgers.cut and ledgers.cut != NOT_COUNTED:
        remarks.print(f"{ledgers.total} ledgers were counted, then: {ledgers.cut}; a longer --timeout counts more")
    for names in found.shared_machines:
        remarks.print(shared_text(names))
    if ledgers.unreadable:
        remarks.print(
            f"the metadata of {len(ledgers.unreadable)} ledgers cannot be decoded: {', '.join(map(str, ledgers.unreadable[:10]))}"
        )
