"""``triplicate up``: a cluster of real processes on this machine."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from triplicate.cli.cluster_folder import STORES
from triplicate.cli.local import LocalCluster, Running, local_cluster
from triplicate.cli.options import DEFAULT_FOLDER
from triplicate.cli.output import print_json, print_table, remarks
from triplicate.cli.running import watch_parent

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
@click.option("--json", "as_json", is_flag=True, help="Print what runs where as one line of JSON.")
@click.option("--parent-pipe", type=int, hidden=True)
def up(folder: str, bookies: int | None, nodes: int | None, metadata: str | None, as_json: bool, parent_pipe: int | None) -> None:
    """Run a local cluster until Ctrl-C.

    Ports are chosen at the first start and used again at every later one. When this process ends, in whatever way, its processes end too.
    """
    watch_parent(parent_pipe)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with local_cluster(Path(folder), bookies=bookies, nodes=nodes, metadata=metadata) as cluster:
        show(cluster, as_json=as_json)
        while not stop.wait(POLL_S):
            for one in cluster.ended():
                tell_end(cluster, one)
        remarks.print("ending …")


def show(cluster: LocalCluster, *, as_json: bool) -> None:
    """What runs where."""
    uri = cluster.folder.metadata_uri
    running = cluster.running.items()
    rows = [(name, str(one.facts.get("address", "")), one.process.pid, str(one.facts.get("metrics", ""))) for name, one in running]
    if as_json:
        processes = [{"name": name, "address": address, "pid": pid, "metrics": metrics} for name, address, pid, metrics in rows]
        print_json({"metadata": uri, "folder": str(cluster.folder.path), "processes": processes})
        return
    print_table(("process", "address", "pid", "metrics"), rows, right=("pid",), title=f"cluster {cluster.folder.path}")
    remarks.print(f"metadata: {uri}")
    remarks.print(f"from another shell: export TRIPLICATE_METADATA={uri}")
    remarks.print("ready; Ctrl-C ends everything")


def tell_end(cluster: LocalCluster, one: Running) -> None:
    """A process ended by itself: say how, and how to start it again."""
    code = one.process.returncode
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    member = one.member
    remarks.print(
        f"{member.name} {how}; the others go on. Its log: {cluster.folder.log_of(member)}. "
        f"Start it again: triplicate {member.kind} --config {cluster.folder.config_of(member)}"
    )
