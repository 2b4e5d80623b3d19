"""Compares our sources and sinks with Kafka's connector, and with JDBC on PostgreSQL, in turn in one Spark session.

    python -m benchmarks.spark.run [--quick]

Spark is the newest release with a connector for Kafka in Maven Central, in an environment of its own. A figure is the median of the rounds
after the first. Reads end in Spark's `noop` sink. ``build/bench/spark.json`` has all figures, and under `ratios` one number for each
target: 1.0 is on target, and more is better.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import DataFrame, SparkSession

from benchmarks.ledger.processes import BUILD, START_LIMIT_S, CaseFailed
from benchmarks.spark.kafka import CONNECTOR, Brokers, jars
from benchmarks.spark.sides import PARTITIONS, Kafka, Ours, Side
from benchmarks.sql.servers import DATABASE, USER, Postgres, data_folder
from scripts.spark_versions import TOOLS, environment_of
from tests.differential.servers import account
from triplicate.blocking import connect
from triplicate.cli import local_cluster, print_table
from triplicate.cli.terminal.output import remarks
from triplicate.errors import EnvironmentFault
from triplicate.spark import session
from triplicate.spark.cluster.database_tables import leader_connection

RATE = 1_000
SETTLE_S = 4.0
"""Records of a query's first seconds are not counted in its latency."""
STREAM_LIMIT_S = 300
Figures = dict[str, dict[str, float]]
"""Figures by case and side."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rounds: int
    mib: int
    rows: int
    latency_s: float


FULL, QUICK = Sizes(3, 512, 1_000_000, 30.0), Sizes(2, 128, 250_000, 12.0)
TARGETS: Mapping[str, Callable[[Figures], float]] = {
    "read_1k_vs_kafka": lambda found: _times(found["read_1k"], "kafka", "ours") / 3.0,
    "read_100_vs_kafka": lambda found: _times(found["read_100"], "kafka", "ours") / 2.5,
    "stream_vs_kafka": lambda found: _times(found["stream_1k"], "kafka", "ours") / 2.5,
    "write_vs_kafka": lambda found: _times(found["write_1k"], "kafka", "ours") / 5.0,
    "latency_p50_ms": lambda found: 250.0 / found["latency_p50_ms"]["ours"],
    "latency_vs_kafka": lambda found: 0.4 * _times(found["latency_p50_ms"], "kafka", "ours"),
    "empty_trigger_ms": lambda found: 100.0 / found["empty_trigger_ms"]["ours"],
    "table_read_vs_jdbc": lambda found: min(_times(found["table_read"], jdbc, "ours") for jdbc in ("jdbc", "jdbc_4")) / 2.0,
}
"""1.0 is on target."""


def _times(by_side: Mapping[str, float], of: str, to: str) -> float:
    return by_side[of] / by_side[to]


def tree_cpu_s() -> float:
    """Processor time of this process and of all that it has started, with those that have ended and were waited for."""
    found = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        found += times.user + times.system + times.children_user + times.children_system
    return found


def in_turn(case: str, sizes: Sizes, jobs: Mapping[str, Callable[[int], object]]) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds and processor seconds by side: medians of the rounds after the first, which warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    cpu: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(sizes.rounds + 1):
        remarks.print(f"{case}: round {turn} of {sizes.rounds}")
        for name, job in jobs.items():
            cpu_s, began = tree_cpu_s(), time.perf_counter()
            job(turn)
            if turn:
                seconds[name].append(time.perf_counter() - began)
                cpu[name].append(tree_cpu_s() - cpu_s)
    return {name: statistics.median(each) for name, each in seconds.items()}, {name: statistics.median(each) for name, each in cpu.items()}


def to_nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def made_input(spark: SparkSession, folder: Path, size_bytes: int, mib: int) -> DataFrame:
    """Random values in Parquet files."""
    folder.mkdir()
    each = (mib << 20) // size_bytes // PARTITIONS
    for number in range(PARTITIONS):
        offsets = pa.array(range(0, (each + 1) * size_bytes, size_bytes), pa.int32()).buffers()[1]
        values = pa.Array.from_buffers(pa.binary(), each, [None, offsets, pa.py_buffer(os.urandom(each * size_bytes))])
        pq.write_table(pa.table({"value": values}), folder / f"{number}.parquet", compression="none", use_dictionary=False)
    return spark.read.parquet(str(folder))


def logs_compared(spark: SparkSession, sides: Sequence[Side], sizes: Sizes, folder: Path) -> Figures:
    """Batch writes, batch reads and streams of what is there."""
    found: Figures = {}
    for what, size_bytes, mib in (("1k", 1024, sizes.mib), ("100", 100, sizes.mib // 4)):
        frame = made_input(spark, folder / what, size_bytes, mib)
        for side in sides:
            for turn in range(sizes.rounds + 1):
                side.create(f"{what}-{turn}")
        writes = {side.name: partial(written, side, frame, what) for side in sides}
        found[f"write_{what}"], cpu = in_turn(f"write_{what}", sizes, writes)
        found[f"write_{what}_cpu_s_per_gb"] = per_gb(cpu, mib)
        reads = {side.name: partial(read_back, side, f"{what}-1") for side in sides[:2]}
        found[f"read_{what}"], cpu = in_turn(f"read_{what}", sizes, {**reads, "parquet": partial(scanned, frame)})
        found[f"read_{what}_cpu_s_per_gb"] = per_gb(cpu, mib)
    streams = {side.name: partial(drained, side, "1k-1") for side in sides[:2]}
    found["stream_1k"], _ = in_turn("stream_1k", sizes, streams)
    return found


def per_gb(cpu: Mapping[str, float], mib: int) -> dict[str, float]:
    """Processor seconds for 1e9 bytes."""
    return {name: 1e9 * each / (mib << 20) for name, each in cpu.items()}


def written(side: Side, frame: DataFrame, what: str, turn: int) -> None:
    side.write(frame, f"{what}-{turn}")


def read_back(side: Side, log: str, turn: int) -> None:
    to_nowhere(side.read(log))


def scanned(frame: DataFrame, turn: int) -> None:
    to_nowhere(frame)


def drained(side: Side, log: str, turn: int) -> None:
    """A stream with AvailableNow, from its start to its end."""
    with tempfile.TemporaryDirectory(prefix="tri-") as checkpoint:
        query = side.stream(log).writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        if not query.awaitTermination(STREAM_LIMIT_S):
            query.stop()
            raise CaseFailed(f"{side.name}: the stream has not ended within {STREAM_LIMIT_S:.0f} s")


def latency(side: Side, sizes: Sizes) -> tuple[float, float, float]:
    """p50 and p99 from a record's birth in the producer until a batch has it in the driver, and the time of an empty trigger, in ms."""
    log = f"latency-{time.time_ns()}"
    side.create(log)
    seen: list[tuple[int, int]] = []

    def keep(frame: DataFrame, _: int) -> None:
        rows = frame.select("value").collect()
        now = time.time_ns()
        seen.extend((int.from_bytes(row.value[:8], "big"), now) for row in rows)

    with tempfile.TemporaryDirectory(prefix="tri-") as checkpoint:
        query = side.stream(log).writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint).start()
        try:
            producer = side.produce(log, RATE, SETTLE_S + sizes.latency_s)
            try:
                producer.popen.wait(STREAM_LIMIT_S)
            finally:
                producer.kill()
            time.sleep(SETTLE_S)
            empty = [one["durationMs"]["triggerExecution"] for one in query.recentProgress if not one["numInputRows"]]
        finally:
            query.stop()
    if not seen or not empty:
        raise CaseFailed(f"{side.name}: {len(seen)} records arrived, and {len(empty)} triggers were empty")
    first = seen[0][0] + SETTLE_S * 1e9
    delays = sorted((now - born) / 1e6 for born, now in seen if born > first)
    if not delays:
        raise CaseFailed(f"{side.name}: no record arrived after the first {SETTLE_S:.0f} s")
    return statistics.median(delays), delays[len(delays) * 99 // 100], statistics.median(empty[-100:])


def latencies(sides: Sequence[Side], sizes: Sizes) -> Figures:
    measured: dict[str, list[tuple[float, float, float]]] = {side.name: [] for side in sides}
    for turn in range(sizes.rounds):
        remarks.print(f"latency: round {turn + 1} of {sizes.rounds}")
        for side in sides:
            measured[side.name].append(latency(side, sizes))
    names = ("latency_p50_ms", "latency_p99_ms", "empty_trigger_ms")
    return {
        name: {side: statistics.median(each[place] for each in found) for side, found in measured.items()}
        for place, name in enumerate(names)
    }


def led(uri: str) -> psycopg.Connection[Any]:
    """A connection to the leader of the new database."""
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            return leader_connection(uri, DATABASE)
        except EnvironmentFault:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.1)


def tables_compared(spark: SparkSession, uri: str, postgres: Postgres, sizes: Sizes) -> Figures:
    """A table of five columns written and read, beside Spark's JDBC with one part and with four."""
    frame = spark.range(sizes.rows).selectExpr(
        "id", "concat('name ', id % 1000) name", "cast(id % 77 AS int) qty", "cast(id % 10000 / 7 AS decimal(12,2)) price",
        "concat('note ', id, ' of the row') note",
    )  # fmt: skip
    table = "(id bigint primary key, name text, qty integer, price numeric(12,2), note text)"
    with connect(uri) as client:
        client.databases().create(DATABASE)
    ours = {"metadataServiceUri": uri, "database": DATABASE}
    url = f"jdbc:postgresql://127.0.0.1:{postgres.leader_port}/{DATABASE}"
    jdbc = {"url": url, "user": USER, "driver": "org.postgresql.Driver"}
    bounds = {"partitionColumn": "id", "lowerBound": "0", "upperBound": str(sizes.rows), "numPartitions": str(PARTITIONS)}
    for turn in range(sizes.rounds + 1):
        for server in (postgres.connect(postgres.leader_port), led(uri)):
            with server as connection:
                connection.execute(f"CREATE TABLE t{turn} {table}".encode())
    found: Figures = {}
    found["table_write"], _ = in_turn(
        "table_write",
        sizes,
        {
            "ours": lambda turn: frame.write.format("triplicate-table").mode("append").options(**ours, table=f"t{turn}").save(),
            "jdbc": lambda turn: frame.write.format("jdbc").mode("append").options(**jdbc, dbtable=f"t{turn}").save(),
        },
    )
    found["table_read"], _ = in_turn(
        "table_read",
        sizes,
        {
            "ours": lambda turn: to_nowhere(spark.read.format("triplicate-table").options(**ours, table="t1").load()),
            "jdbc": lambda turn: to_nowhere(spark.read.format("jdbc").options(**jdbc, dbtable="t1").load()),
            "jdbc_4": lambda turn: to_nowhere(spark.read.format("jdbc").options(**jdbc, **bounds, dbtable="t1").load()),
        },
    )
    return found


def measured(sizes: Sizes) -> Figures:
    """All figures. The servers of both sides run during the whole comparison, and those of a case that does not use them are idle."""
    packages = ",".join(str(jar) for name in ("connector", "postgresql") for jar in sorted(jars(name).glob("*.jar")) if is_wanted(jar))
    with ExitStack() as running:
        folder = running.enter_context(data_folder(BUILD / "spark"))
        cluster = running.enter_context(local_cluster(folder / "c", bookies=3, nodes=3))
        uri = cluster.folder.metadata_uri
        brokers = running.enter_context(Brokers(folder / "kafka"))
        home = folder / "postgresql"
        home.mkdir()
        if user := account():
            shutil.chown(home, user["user"], user["group"])
        postgres = Postgres("postgresql", home, {})
        running.callback(postgres.stop)
        postgres.start()
        extra = {"spark.jars": packages, "spark.sql.streaming.noDataProgressEventInterval": "0"}
        spark = session("comparison", run_folder=folder / "s", extra=extra)
        running.callback(spark.stop)
        sides: list[Side] = [Ours(spark, uri), Kafka(spark, brokers.servers, flush=False), Kafka(spark, brokers.servers, flush=True)]
        found = logs_compared(spark, sides, sizes, folder)
        found |= latencies(sides[:2], sizes)
        return found | tables_compared(spark, uri, postgres, sizes)


def is_wanted(jar: Path) -> bool:
    """Whether Spark lacks this jar. Maven brings Spark's own with the connector, too."""
    return not (Path(pyspark.__path__[0]) / "jars" / jar.name).exists()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer rounds of less data")
    arguments = parser.parse_args()
    if pyspark.__version__ != CONNECTOR:
        python = environment_of(CONNECTOR, *TOOLS, "confluent-kafka")
        os.execv(python, [str(python), "-m", "benchmarks.spark.run", *sys.argv[1:]])
    found = measured(QUICK if arguments.quick else FULL)
    sides = list(dict.fromkeys(side for by_side in found.values() for side in by_side))
    rows = [(case, *(f"{by_side[side]:.2f}" if side in by_side else "-" for side in sides)) for case, by_side in found.items()]
    print_table(("case (s, or as named)", *sides), rows, right=sides)
    ratios = {name: round(target(found), 3) for name, target in TARGETS.items()}
    print_table(
        ("target", "ratio (1.0 is on target)"), [(name, str(ratio)) for name, ratio in ratios.items()], right=("ratio (1.0 is on target)",)
    )
    (BUILD / "spark.json").write_text(json.dumps({"spark": pyspark.__version__, "figures": found, "ratios": ratios}, indent=1) + "\n")


if __name__ == "__main__":
    main()
