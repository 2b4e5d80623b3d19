"""``triplicate bookie rebuild-index``: rebuilds the index of a stopped bookie."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import click

from triplicate.bookie import RebuildReport, rebuild_index
from triplicate.cli.server_commands.bookie_command import bookie_options, configuration_of, metadata_uri, require_identity, with_cluster
from triplicate.cli.terminal.output import print_json, print_table
from triplicate.config import BookieSettings
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host


@click.command("rebuild-index")
@bookie_options
@click.option(
    "--accept-lost-logs", is_flag=True, help="Continue without entry logs that the old index names; the bookie denies their entries."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def rebuild(context: click.Context, config: str | None, flags: Mapping[str, object], accept_lost_logs: bool, as_json: bool) -> None:
    """Rebuild the index of a stopped bookie from its entry logs and journals, including fences.

    The old index is kept until the new one is complete, and is restored if an entry log or journal cannot be read. If the old index is
    readable, every entry log that it names must exist.
    """
    configuration = configuration_of(context, config, flags)
    require_identity(configuration)

    async def work(host: Host, cluster: ClusterMetadata) -> RebuildReport:
        return await rebuild_index(host, configuration.get(BookieSettings), cluster, lost_accepted=accept_lost_logs)

    report = with_cluster("bookie-rebuild", metadata_uri(configuration), work, configuration)
    facts = dataclasses.asdict(report)
    for number in report.missing_logs:
        click.echo(missing_log(number), err=True)
    if as_json:
        print_json(facts)
    else:
        counts = [(name.replace("_", " "), value) for name, value in facts.items() if name != "missing_logs"]
        print_table(("the new index was made from", ""), counts)


def missing_log(number: int) -> str:
    return (
        f"warning: entry log {number}, which the old index named, is in none of the ledger directories: it was deleted after that index "
        f"was written, or it is lost, and the bookie denies what it held: if it is lost, move the rest of the data away and run "
        "`triplicate bookie format --config FILE --replace`"
    )
