"""``triplicate demo``: runs the demonstration, prints the summary and writes it as JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from triplicate.cli import local_cluster, remarks, wait_for_orphans, watch_parent
from triplicate.demo.dataset import expected_figures, unpack
from triplicate.demo.findings import Findings, show
from triplicate.demo.flow import Flow
from triplicate.demo.saboteur import MemoryWatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOOKIES = 4
NODES = 3
JVM_STOP_S = 10.0


@click.command()
@click.option(
    "--dir", "folder", default="build/demo", show_default=True, help="Folder for the cluster and the results; its cluster is made anew."
)
@click.option("--parent-pipe", type=int, hidden=True)
def demo(folder: str, parent_pipe: int | None) -> None:
    """Run the demonstration on real data.

    336,776 flights go from Spark into a log, from the log through Spark into a replicated database, and from its change feed through Spark
    into Parquet and a picture; a bookie and the database's leader are killed on the way. Exit code 0 only if every check holds.
    """
    watch_parent(parent_pipe)
    place = Path(folder).absolute()
    place.mkdir(parents=True, exist_ok=True)
    clear(place)
    started = time.monotonic()
    findings = Findings()
    with MemoryWatch() as memory:
        with findings.stage("unpack the input, ask pandas what to expect") as stage:
            dataset = unpack(place / "input")
            expected = expected_figures(dataset)
            stage.records, stage.bytes = expected.flights, dataset.flights.stat().st_size
        with local_cluster(place / "cluster", bookies=BOOKIES, nodes=NODES) as cluster:
            remarks.print(f"{BOOKIES} bookies and {NODES} database nodes are up")
            with findings.stage("start Spark"):
                spark = start_spark(place)
            try:
                Flow(cluster, place, dataset, expected, findings).run(spark)
            finally:
                stop_spark(spark)
    findings.peak_memory_bytes = memory.peak_bytes
    (place / "summary.json").write_text(json.dumps(findings.summary(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    show(findings, time.monotonic() - started)
    remarks.print(f"summary: {place / 'summary.json'}; picture: {place / 'flights.png'}")
    if not all(findings.verified.values()):
        sys.exit(1)


def start_spark(place: Path) -> SparkSession:
    """Spark's files all go below `place`."""
    from triplicate.spark import session

    return session("triplicate-demo", run_folder=place / "spark")


def stop_spark(spark: SparkSession) -> None:
    """Stop Spark and wait for its JVM, which would outlive us by a moment: after the demo nothing runs."""
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


def clear(place: Path) -> None:
    """Delete what an earlier run left, once its processes are gone; the unpacked input stays, and so does anything that is not ours."""
    cluster = place / "cluster"
    if (cluster / "cluster.json").exists():
        wait_for_orphans(cluster)
        shutil.rmtree(cluster)
    for name in ("spark", "checkpoint", "changes"):
        shutil.rmtree(place / name, ignore_errors=True)
