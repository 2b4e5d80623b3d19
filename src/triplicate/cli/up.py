"""``triplicate up``: a cluster of real processes on this machine."""

from __future__ import annotations

import datetime
import signal
import threading
import time
from pathlib import Path

import click

from triplicate.cli.cluster_folder import STORES
from triplicate.cli.cluster_view import ClusterView
from triplicate.cli.local import LocalCluster, local_cluster
from triplicate.cli.options import DEFAULT_FOLDER
from triplicate.cli.output import print_json, print_table, remarks
from triplicate.cli.prober import Prober, ask_all, targets_of
from triplicate.cli.running import watch_parent
from triplicate.cli.supervisor import Supervisor

POLL_S = 0.2


@click.command()
@click.option("--dir", "folder", default=DEFAULT_FOLDER, show_default=True, help="Folder of the cluster; made when missing.")
@click.option("--bookies", type=click.IntRange(1, 100), help="Bookies. Default: those of the folder, or 4 in a new one.")
@click.option("--nodes", type=click.IntRange(0, 100), help="Database nodes. Default: those of the folder.")
@click.option(
    "--metadata",
    type=click.Choice(STORES),
    help="Where a new cluster keeps its metadata: one SQLite file, or a ZooKeeper that is run beside the bookies (needs Java, PySpark "
    "and kazoo). Default: sqlite.",
)
@click.option("--no-restart", is_flag=True, help="Report a process that ends, and do not start it again.")
@click.option("--json", "as_json", is_flag=True, help="Print what runs where as one line of JSON.")
@click.option("--parent-pipe", type=int, hidden=True)
def up(
    folder: str,
    bookies: int | None,
    nodes: int | None,
    metadata: str | None,
    no_restart: bool,
    as_json: bool,
    parent_pipe: int | None,
) -> None:
    """Run a local cluster until Ctrl-C.

    Ports are chosen at the first start and used again at every later one. A process that ends by itself is started again, after repeated
    ends at intervals that grow to a minute. When this process ends, in whatever way, its processes end too. What changes is told on
    standard error: processes that end and serve again, bookies that are read-only, databases without a leader.
    """
    watch_parent(parent_pipe)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with local_cluster(Path(folder), bookies=bookies, nodes=nodes, metadata=metadata) as cluster:
        view = ClusterView()
        first = view.observe(time.monotonic(), ask_all(targets_of(cluster)))
        show(cluster, view, as_json=as_json)
        for line in first:
            tell(line)
        watch(cluster, view, stop, restart=not no_restart)
        remarks.print("ending …")


def watch(cluster: LocalCluster, view: ClusterView, stop: threading.Event, *, restart: bool) -> None:
    """Keep the cluster running and tell what changes, until `stop` is set."""
    supervisor = Supervisor(cluster, restart=restart, tell=tell)
    with Prober() as prober:
        seen = prober.answers
        while not stop.wait(POLL_S):
            supervisor.look()
            prober.targets = targets_of(cluster)
            if prober.answers is not seen:
                seen = prober.answers
                for line in view.observe(time.monotonic(), {name: answer for name, answer in seen.items() if name in prober.targets}):
                    tell(line)


def tell(text: str) -> None:
    """A line on standard error, with its time in UTC."""
    remarks.print(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ} {text}")


def show(cluster: LocalCluster, view: ClusterView, *, as_json: bool) -> None:
    """What runs where."""
    uri = cluster.folder.metadata_uri
    running = cluster.running.items()
    rows = [(name, str(one.facts.get("address", "")), one.process.pid, str(one.facts.get("metrics", ""))) for name, one in running]
    if as_json:
        processes = [{"name": name, "address": address, "pid": pid, "metrics": metrics} for name, address, pid, metrics in rows]
        print_json({"metadata": uri, "folder": str(cluster.folder.path), "processes": processes, "read_only": view.read_only})
        return
    print_table(("process", "address", "pid", "metrics"), rows, right=("pid",), title=f"cluster {cluster.folder.path}")
    remarks.print(f"metadata: {uri}")
    remarks.print(f"from another shell: export TRIPLICATE_METADATA={uri}")
    remarks.print(ready_line(view.read_only, sum(one.member.kind == "bookie" for _, one in running)))


def ready_line(read_only: list[str], bookies: int) -> str:
    """The last line of a start."""
    if not read_only:
        return "ready; Ctrl-C ends everything"
    which = f"{len(read_only)} of {bookies} bookies are read-only ({', '.join(read_only)})"
    return f"ready; {which}: they take no new entries until there is space on their disks; Ctrl-C ends everything"
