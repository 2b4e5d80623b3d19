"""``triplicate up``: a cluster of real processes on this machine."""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import threading
import time
from pathlib import Path

import click

from triplicate.cli.process.serving import outlive_hangup, watch_parent
from triplicate.cli.supervision.cluster_folder import STORES, ClusterFolder
from triplicate.cli.supervision.cluster_pages import ClusterPages, ClusterState, Serves
from triplicate.cli.supervision.cluster_view import Answers, ClusterView
from triplicate.cli.supervision.local_processes import LocalCluster, local_cluster
from triplicate.cli.supervision.prober import Prober, probe_all, targets_of
from triplicate.cli.supervision.supervisor import SILENCE_LIMIT_S, Supervisor
from triplicate.cli.terminal.extras import require
from triplicate.cli.terminal.options import DEFAULT_FOLDER, FiniteRange
from triplicate.cli.terminal.output import print_json, print_table, remarks
from triplicate.config import CONFIG_VARIABLE, ProcessSettings
from triplicate.runtime import Metrics

POLL_S = 0.2


@click.command()
@click.option("--dir", "folder", default=DEFAULT_FOLDER, show_default=True, help="Folder of the cluster; created if missing.")
@click.option("--bookies", type=click.IntRange(1, 100), help="Number of bookies. Default: as in the folder, or 4 in a new one.")
@click.option("--nodes", type=click.IntRange(0, 100), help="Number of database nodes. Default: as in the folder, or 3 in a new one.")
@click.option(
    "--metadata",
    type=click.Choice(STORES),
    help="Where a new cluster keeps its metadata: one SQLite file, or a ZooKeeper that is run beside the bookies (needs Java, PySpark "
    "and kazoo). Default: sqlite.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Protect every door of a new cluster: TLS, users and passwords, made in DIR/security. A secured folder stays secured without it.",
)
@click.option(
    "--resp/--no-resp",
    default=None,
    help="Serve key-value stores to clients of Redis, on a port of each node, or serve them no longer. Default: as in the folder; not in a "
    "new one.",
)
@click.option("--no-restart", is_flag=True, help="Report processes that end or do not answer, and do not restart them.")
@click.option(
    "--silence-limit",
    "silence_limit_s",
    type=FiniteRange(0, 86_400),
    default=SILENCE_LIMIT_S,
    show_default=True,
    help="Seconds after which a process that runs and does not answer is killed and started again; 0 for never.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve /health, /ready and /metrics of the whole cluster on this loopback port; 0 takes a free one. Default: they are not served.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the processes and their addresses as one line of JSON.")
@click.option("--parent-pipe", type=int, hidden=True)
def up(
    folder: str,
    bookies: int | None,
    nodes: int | None,
    metadata: str | None,
    secure: bool,
    resp: bool | None,
    no_restart: bool,
    silence_limit_s: float,
    metrics_port: int | None,
    as_json: bool,
    parent_pipe: int | None,
) -> None:
    """Run a local cluster until Ctrl-C.

    Ports are chosen at the first start and reused at later starts. A process that ends by itself is restarted, after repeated ends at
    intervals that grow to a minute. When this command ends, in any way, its processes end, too. Changes are reported on standard error:
    processes that end and serve again, read-only bookies, databases without a leader.
    """
    watch_parent(parent_pipe)
    hung_up = threading.Event()
    outlive_hangup(hung_up.set)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if secure:
        require("a secured cluster", "triplicate[security]", ("cryptography", "scramp"))
    begin = report_overruled
    with local_cluster(Path(folder), bookies=bookies, nodes=nodes, metadata=metadata, secure=secure, resp=resp, begin=begin) as cluster:
        monitor = ClusterMonitor(cluster, restart=not no_restart, silence_limit_s=silence_limit_s or None)
        with contextlib.ExitStack() as stack:
            pages = None
            if metrics_port is not None:
                pages = stack.enter_context(ClusterPages(monitor.state, monitor.metrics, ProcessSettings(metrics_port=metrics_port)))
            first = monitor.observe(probe_all(targets_of(cluster), {}))
            show(cluster, monitor.view, pages.url if pages is not None else None, as_json=as_json)
            for line in first:
                report(line)
            monitor.run(stop, hung_up)
            remarks.print("ending …")


class ClusterMonitor:
    """Keeps a cluster running and reports changes."""

    def __init__(self, cluster: LocalCluster, *, restart: bool, silence_limit_s: float | None) -> None:
        self._cluster = cluster
        self._supervisor = Supervisor(cluster, restart=restart, silence_limit_s=silence_limit_s, report=report)
        self._answers: Answers = {}
        self.view = ClusterView()
        self.state = ClusterState()
        self.metrics = Metrics()
        self.metrics.gauge("triplicate_up_processes", "Processes of the cluster.").set(len(cluster.folder.members))
        self.metrics.gauge("triplicate_up_ready_processes", "Processes that are ready.").set_function(self.state.ready_count)
        self.metrics.gauge("triplicate_up_restarts", "Processes started again since the start of the cluster.").set_function(
            lambda: self._supervisor.restarts
        )

    def observe(self, answers: Answers) -> list[str]:
        """Record the answers of the processes; returns a line for each change."""
        targets = targets_of(self._cluster)
        self._answers = {name: answer for name, answer in answers.items() if name in targets}
        self._update_state()
        self._supervisor.observe(self._answers)
        return self.view.observe(time.monotonic(), self._answers)

    def _update_state(self) -> None:
        """Update the state behind the pages."""
        self.state.update({member.name: self._serves(member.name) for member in self._cluster.folder.members}, self._answers)

    def _serves(self, name: str) -> Serves:
        one = self._cluster.running.get(name)
        if one is None or not one.facts:
            return Serves.NOT
        return Serves.WITH_PROBES if "metrics" in one.facts else Serves.WITHOUT_PROBES

    def run(self, stop: threading.Event, hung_up: threading.Event) -> None:
        """Supervise the cluster until `stop` is set. SIGHUP is passed on to the processes when `hung_up` is set."""
        with Prober(self._answers) as prober:
            seen = prober.answers
            while not stop.wait(POLL_S):
                self._supervisor.poll()
                if hung_up.is_set():
                    hung_up.clear()
                    self._cluster.hang_up()
                    report("SIGHUP: passed on to the processes, which open their audit logs again")
                prober.targets = targets_of(self._cluster)
                self._update_state()
                if prober.answers is not seen:
                    seen = prober.answers
                    for line in self.observe(seen):
                        report(line)


def report_overruled(folder: ClusterFolder) -> None:
    """Name the variables of other clusters and processes that this cluster's processes do not get."""
    names = folder.overruled(os.environ)
    if names:
        report(f"ignored for the processes of {folder.path}, whose settings files and folder decide: {', '.join(names)}")


def report(text: str) -> None:
    """Print a line on standard error, with its time in UTC."""
    remarks.print(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ} {text}")


def show(cluster: LocalCluster, view: ClusterView, pages: str | None, *, as_json: bool) -> None:
    """Print the processes and their addresses.

    Args:
        pages: URL of the whole cluster's metrics; None if they are not served.
    """
    uri = cluster.folder.metadata_uri
    running = [(name, one) for name, one in cluster.running.items() if one.facts]
    missing = [name for name, one in cluster.running.items() if not one.facts]
    rows = [(name, str(one.facts.get("address", "")), one.process.pid, str(one.facts.get("metrics", ""))) for name, one in running]
    resp = {name: str(one.facts["resp"]) for name, one in running if "resp" in one.facts}
    if as_json:
        processes = [
            {"name": name, "address": address, "pid": pid, "metrics": metrics, **({"resp": resp[name]} if name in resp else {})}
            for name, address, pid, metrics in rows
        ]
        facts = {"metadata": uri, "folder": str(cluster.folder.path), "processes": processes, "metrics": pages}
        print_json({**facts, "read_only": view.read_only, "missing": missing})
        return
    print_table(("process", "address", "pid", "metrics"), rows, right=("pid",), title=f"cluster {cluster.folder.path}")
    remarks.print(f"metadata: {uri}")
    remarks.print(f"from another shell: {next_step(cluster.folder)}")
    for name, address in resp.items():
        remarks.print(f"{name} serves clients of Redis at {address}")
    if pages is not None:
        remarks.print(f"the whole cluster's metrics and probes: {pages}")
    remarks.print(ready_line(view.read_only, missing, sum(one.member.kind == "bookie" for _, one in running)))


def next_step(folder: ClusterFolder) -> str:
    """The line that a user types so that commands find the cluster."""
    if not folder.is_secured:
        return f"export TRIPLICATE_METADATA={folder.metadata_uri}"
    beside = f"; not needed in {folder.path.parent}" if folder.path.name == DEFAULT_FOLDER else ""
    return f"export {CONFIG_VARIABLE}={folder.security.client_file}{beside}"


def ready_line(read_only: list[str], missing: list[str], bookies: int) -> str:
    """The last line of a start."""
    remarks = [f"{', '.join(missing)} did not start"] if missing else []
    if read_only:
        which = f"{len(read_only)} of {bookies} bookies are read-only ({', '.join(read_only)})"
        remarks.append(f"{which}: they accept no new entries, for want of disk space or by request")
    return "; ".join(["ready", *remarks, "Ctrl-C ends everything"])
