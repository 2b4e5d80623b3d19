"""Measures the statements of a database's leader while Spark reads a table of it, in turn with rest and with a scan of files.

    python -m benchmarks.spark.beside [SECONDS]

A client inserts rows at a rate through the leader. The scan of Parquet files with the same rows shows what Spark costs on the same cores if
it does not touch the cluster at all. Each figure is the median of the rounds.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack

from pyspark.sql import DataFrame, SparkSession

from benchmarks.driving import percentile
from benchmarks.ledger.processes import BUILD
from benchmarks.spark.run import led, to_nowhere
from benchmarks.sql.servers import DATABASE, data_folder
from triplicate.blocking import connect
from triplicate.cli import local_cluster, print_table
from triplicate.cli.terminal.output import remarks
from triplicate.spark import session

ROWS = 1_000_000
RATE = 100
ROUNDS = 4
CORES = 1
"""Of Spark. The other one is for the servers and the client."""
LIMIT_S = 120.0


def insert(uri: str, seconds: float) -> None:
    """Insert at the rate, and print the times of the statements in ms. A late statement counts from when it was due."""
    found: list[float] = []
    with led(uri) as connection:
        began = time.monotonic()
        for number in range(int(RATE * seconds)):
            due = began + number / RATE
            time.sleep(max(0.0, due - time.monotonic()))
            connection.execute("INSERT INTO small (note) VALUES (%s)", (f"note {number}",))
            found.append(1000 * (time.monotonic() - due))
    print(json.dumps(sorted(found)))


def during(uri: str, seconds: float, frame: DataFrame | None) -> tuple[float, float, int]:
    """p50 and p99 of the statements in ms, and how often the frame was read meanwhile."""
    words = [sys.executable, "-m", "benchmarks.spark.beside", "insert", uri, str(seconds)]
    reads = 0
    with tempfile.TemporaryFile() as output:  # A pipe that nobody reads meanwhile would hold the client back.
        client = subprocess.Popen(words, stdout=output)
        try:
            while frame is not None and client.poll() is None:
                to_nowhere(frame)
                reads += 1
            client.wait(seconds + LIMIT_S)
        finally:
            client.kill()
            client.wait()
        output.seek(0)
        times = json.load(output)
    return percentile(times, 0.5), percentile(times, 0.99), reads


def measured(spark: SparkSession, uri: str, files: str, seconds: float) -> list[tuple[str, float, float, float]]:
    """By case: p50 and p99 in ms, and reads of all rows."""
    ours = {"metadataServiceUri": uri, "database": DATABASE, "table": "large"}
    cases = {
        "alone": None,
        "Spark scans files": spark.read.parquet(files),
        "Spark reads the table": spark.read.format("triplicate-table").options(**ours).load(),
    }
    found: dict[str, list[tuple[float, float, int]]] = {case: [] for case in cases}
    for turn in range(ROUNDS + 1):
        for case, frame in cases.items():
            remarks.print(f"{case}: round {turn} of {ROUNDS}")
            figure = during(uri, seconds, frame)
            if turn:
                found[case].append(figure)
    rows: list[tuple[str, float, float, float]] = []
    for case, figures in found.items():
        p50, p99, reads = (statistics.median(figure[place] for figure in figures) for place in range(3))
        rows.append((case, p50, p99, reads))
    return rows


def main() -> None:
    if sys.argv[1:2] == ["insert"]:
        insert(sys.argv[2], float(sys.argv[3]))
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 15.0
    with ExitStack() as running:
        folder = running.enter_context(data_folder(BUILD / "spark"))
        uri = running.enter_context(local_cluster(folder / "c", bookies=3, nodes=3)).folder.metadata_uri
        with connect(uri) as client:
            client.databases().create(DATABASE)
        with led(uri) as connection:
            connection.execute("CREATE TABLE large (id bigint primary key, name text, qty integer, note text)")
            connection.execute("CREATE TABLE small (id integer primary key, note text)")
            made = f"SELECT n, 'name ' || n % 1000, n % 77, 'note ' || n FROM generate_series(1, {ROWS}) g(n)"
            connection.execute(f"INSERT INTO large {made}".encode())
        spark = session("beside", run_folder=folder / "s", cores=CORES)
        running.callback(spark.stop)
        files = str(folder / "files")
        spark.read.format("triplicate-table").options(metadataServiceUri=uri, database=DATABASE, table="large").load().write.parquet(files)
        rows = measured(spark, uri, files, seconds)
    quiet = rows[0][2]
    shown = [(case, f"{p50:.2f}", f"{p99:.2f}", f"{p99 / quiet:.2f}", f"{reads:.0f}") for case, p50, p99, reads in rows]
    print_table(("case", "p50 ms", "p99 ms", "p99, of alone", "reads"), shown, right=("p50 ms", "p99 ms", "p99, of alone", "reads"))


if __name__ == "__main__":
    main()
