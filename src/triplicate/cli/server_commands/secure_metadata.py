"""``triplicate cluster secure-metadata``: close the nodes of a cluster that everyone may use."""

from __future__ import annotations

import dataclasses
import sys
import time

import click

from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.options import cluster_uri, metadata_access, metadata_option
from triplicate.cli.terminal.output import ProgressBar, print_json, print_table, remarks
from triplicate.errors import ConfigError
from triplicate.metadata import AclReport, NodeAcls, open_cluster
from triplicate.runtime import real_host

REMARK_S = 5.0


@click.command("secure-metadata")
@click.option("--dry-run", is_flag=True, help="Look at every node and change nothing.")
@metadata_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def secure_metadata(dry_run: bool, metadata: str | None, as_json: bool) -> None:
    """Make every node of the cluster in ZooKeeper the property of TRIPLICATE_METADATA_USER alone.

    Give all processes of the cluster the user first: those without it can use nothing afterwards. The command may be interrupted and
    repeated, and processes may run. It also gives nodes that were created with the old password of a `digest` user to the new one.

    Exit code 0: all nodes are the user's alone. 1: some are not.
    """

    async def body() -> AclReport:
        host = real_host("secure-metadata")
        async with await open_cluster(cluster_uri(metadata), host, access=metadata_access(host)) as cluster:
            acls = await NodeAcls.of(cluster, host)
            if acls is None:
                raise ConfigError(
                    "nodes are closed in ZooKeeper only, and for a user: set TRIPLICATE_METADATA_USER and TRIPLICATE_METADATA_PASSWORD_FILE"
                )
            with ProgressBar("nodes looked at", None) as bar:
                progress = _Progress(bar)
                return await (acls.check(progress.advance) if dry_run else acls.close_all(progress.advance))

    report = run_loop(body())
    if as_json:
        print_json(dataclasses.asdict(report))
    else:
        print_table(("nodes", ""), [(name.replace("_", " "), value if value != "" else "-") for name, value in _rows(report)])
    left = report.open + report.other - report.closed + report.refused
    sys.exit(1 if left else 0)


def _rows(report: AclReport) -> list[tuple[str, object]]:
    return [(name, value) for name, value in dataclasses.asdict(report).items() if name != "complete"]


class _Progress:
    """A pipe shows no bar, and a large cluster takes minutes."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar = bar
        self._done = 0
        self._started = self._said = time.monotonic()

    def advance(self, count: int) -> None:
        self._done += count
        self._bar.advance(count)
        if time.monotonic() - self._said >= REMARK_S:
            self._said = time.monotonic()
            remarks.print(f"{self._done} nodes, {self._said - self._started:.0f} s")
