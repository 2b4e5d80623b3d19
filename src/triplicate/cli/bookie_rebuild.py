"""``triplicate bookie rebuild-index``: a stopped bookie's index made anew."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import click

from triplicate.bookie import RebuildReport, rebuild_index
from triplicate.cli.bookie import bookie, bookie_options, configuration_of, metadata_uri, with_cluster
from triplicate.cli.output import print_json, print_table
from triplicate.config import BookieSettings
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host


@bookie.command("rebuild-index")
@bookie_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def rebuild(context: click.Context, config: str | None, flags: Mapping[str, object], as_json: bool) -> None:
    """Make a stopped bookie's index anew from its entry logs and journals, fences included.

    The old index stays until the new one is complete, and is put back where a log or journal cannot be read.
    """
    configuration = configuration_of(context, config, flags)

    async def work(host: Host, cluster: ClusterMetadata) -> RebuildReport:
        return await rebuild_index(host, configuration.get(BookieSettings), cluster)

    facts = dataclasses.asdict(with_cluster("bookie-rebuild", metadata_uri(configuration), work))
    if as_json:
        print_json(facts)
    else:
        print_table(("the new index was made from", ""), [(name.replace("_", " "), value) for name, value in facts.items()])
