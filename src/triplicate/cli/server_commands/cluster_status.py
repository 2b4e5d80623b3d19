"""``triplicate cluster status``: the state of the whole cluster on one screen."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from typing import Any

import click

from triplicate.cli.overview.cluster_sources import ClusterSources
from triplicate.cli.overview.core.cluster_facts import ClusterFacts
from triplicate.cli.overview.core.cluster_problems import problems_of
from triplicate.cli.overview.core.status_screen import HEIGHT, PIPE_WIDTH, WIDTH, screen_lines
from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.client_run import client_of
from triplicate.cli.terminal.options import FiniteRange, client_settings, cluster_uri, folder_of, limit_option, metadata_option
from triplicate.cli.terminal.output import print_json
from triplicate.config import SecuritySettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.runtime import addresses_of, sleep
from triplicate.security import TlsIdentity

CLEAR = "\x1b[H\x1b[2J"
"""Moves the cursor to the first line and clears the terminal."""


@click.command("status")
@metadata_option
@click.option("--watch", "watch_s", type=FiniteRange(0.1, 86400), metavar="SECONDS", help="Show it again after each SECONDS, until Ctrl-C.")
@limit_option("Longest time for each source. A source that takes longer is shown as incomplete.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with --watch one line each time.")
def cluster_status(metadata: str | None, watch_s: float | None, limit_s: float, as_json: bool) -> None:
    """Show the state of the cluster on one screen: bookies, databases, logs, under-replicated ledgers.

    The first line says whether the cluster is healthy, and each problem names the command that explains it. Exit code 0: healthy. 1: there
    are problems.
    """

    async def body() -> bool:
        uri = cluster_uri(metadata)
        folder = folder_of(uri)
        async with client_of(uri) as client:
            tls = TlsIdentity.open(client_settings(SecuritySettings), client.host.clock, client.host.trace)
            sources = ClusterSources(client, client_settings(LogClientSettings), limit_s, addresses_of, tls, folder)
            healthy = _show(await sources.collect(), as_json, again=watch_s is not None)
            while watch_s is not None:
                await sleep(client.host.clock, watch_s)
                healthy = _show(await sources.collect(), as_json, again=True)
            return healthy

    sys.exit(0 if run_loop(body()) else 1)


def _show(facts: ClusterFacts, as_json: bool, *, again: bool) -> bool:
    """Print the facts. Returns whether the cluster is healthy."""
    problems = problems_of(facts)
    if as_json:
        print_json(status_json(facts))
        return not problems
    size = shutil.get_terminal_size((WIDTH, HEIGHT)) if sys.stdout.isatty() else None
    # The last line of a terminal stays free for the cursor.
    lines = screen_lines(facts, PIPE_WIDTH) if size is None else screen_lines(facts, size.columns, max(20, size.lines - 1))
    prefix = CLEAR if again and sys.stdout.isatty() else ""
    click.echo(prefix + "\n".join(lines) + ("\n" if again and not prefix else ""))
    return not problems


def status_json(facts: ClusterFacts) -> dict[str, Any]:
    """The facts and problems for JSON."""
    problems = problems_of(facts)
    return {"healthy": not problems, "problems": [dataclasses.asdict(one) for one in problems], **dataclasses.asdict(facts)}
