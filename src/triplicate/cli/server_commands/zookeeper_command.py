"""``triplicate zookeeper``: the ZooKeeper of a local cluster, as one of its processes."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from triplicate.cli.process.serving import outlive_hangup, report_ready, watch_parent
from triplicate.cli.supervision.zookeeper_process import ZooKeeperProcess
from triplicate.errors import EnvironmentFault

POLL_S = 0.1


@click.command(hidden=True)
@click.option(
    "--config", required=True, type=click.Path(dir_okay=False), help="A zoo.cfg file, as written by `triplicate up --metadata zk`."
)
@click.option("--parent-pipe", type=int, hidden=True)
@click.option("--ready-pipe", type=int, hidden=True)
def zookeeper(config: str, parent_pipe: int | None, ready_pipe: int | None) -> None:
    """Run the ZooKeeper of a local cluster until SIGTERM or Ctrl-C.

    It is one real ZooKeeper server on loopback, of the release whose jars PySpark contains.
    """
    outlive_hangup()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    server = ZooKeeperProcess(Path(config), Path(config).with_name("zookeeper.log"))
    # Started before any thread, because the child runs Python code before it executes Java.
    server.start()
    try:
        watch_parent(parent_pipe)
        report_ready(ready_pipe, {"address": server.address})
        while not stop.wait(POLL_S):
            if server.process is None or server.process.poll() is not None:
                raise EnvironmentFault(f"ZooKeeper on {server.address} ended by itself; its output above has the reason")
    finally:
        server.stop()
