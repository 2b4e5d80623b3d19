"""The demonstration's Spark jobs: ingest into the log, load into the database, read the change feed and aggregate."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from triplicate_demo.dataset import FLIGHT_COLUMNS, FLIGHT_KEY, ROUTE_FLIGHTS_MIN, Dataset

LOG = "flights"
DATABASE = "flights"
POLL_S = 0.3
INGEST = "demo-ingest"
"""The ingest's name as an application. Run again with the same version, it adds nothing."""


@contextmanager
def progress(spark: SparkSession, what: str) -> Iterator[None]:
    """Show the progress of Spark's tasks on a terminal while the block runs."""
    tracker = spark.sparkContext.statusTracker()
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(POLL_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            tasks = [(info.numCompletedTasks, info.numTasks) for info in stages if info is not None]
            if tasks:
                done, total = sum(one for one, _ in tasks), sum(one for _, one in tasks)
                sys.stderr.write(f"\r  {what}: {done} of {total} tasks of {len(tasks)} stages \x1b[K")
                sys.stderr.flush()
        sys.stderr.write("\r\x1b[K")

    if not sys.stderr.isatty():
        yield
        return
    watcher = threading.Thread(target=watch, name="spark-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()


def ingest(spark: SparkSession, metadata_uri: str, dataset: Dataset, partitions: int) -> None:
    """Publish the flights into the log, in the order of time, exactly once."""
    columns = ", ".join(f"{name} {'LONG' if kind == 'INTEGER' else 'STRING'}" for name, kind in FLIGHT_COLUMNS)
    flights = spark.read.csv(str(dataset.flights), schema=columns, header=True, nullValue="NA")
    ordered = flights.repartitionByRange(partitions, *FLIGHT_KEY).sortWithinPartitions(*FLIGHT_KEY)
    records = ordered.select(
        F.to_json(F.struct(*[name for name, _ in FLIGHT_COLUMNS])).alias("value"),
        F.concat_ws("|", *FLIGHT_KEY).alias("key"),
        F.to_timestamp("time_hour").alias("timestamp"),
    )
    writer = records.write.format("triplicate").mode("append").option("metadataServiceUri", metadata_uri).option("log", LOG)
    writer.option("txnAppId", INGEST).option("txnVersion", "1").save()


def small_table(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    """One of the small tables, as rows."""
    frame = spark.read.csv(str(path), header=True, inferSchema=True, nullValue="NA", timestampFormat="'none'")
    if "time_hour" in frame.columns:
        frame = frame.withColumn("time_hour", F.col("time_hour").cast("string"))
    return [row.asDict() for row in frame.collect()]


def load_stream(
    spark: SparkSession, metadata_uri: str, checkpoint: Path, records_per_batch: int, load: Callable[[int, Sequence[str]], None]
) -> None:
    """Stream the log in micro-batches up to its present end. `load(batch, values)` gets each batch's records in order."""

    def load_frame(frame: DataFrame, batch: int) -> None:
        table = frame.select("offset", "value").toArrow().sort_by("offset")
        load(batch, [value.decode() for value in table.column("value").to_pylist()])

    source = spark.readStream.format("triplicate").option("metadataServiceUri", metadata_uri).option("log", LOG)
    stream = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", str(records_per_batch)).load()
    query = stream.writeStream.foreachBatch(load_frame).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()


def archive_changes(spark: SparkSession, metadata_uri: str, folder: Path) -> dict[str, int]:
    """Read the whole change feed of the flights into Parquet. Returns the number of changes of each kind."""
    feed = spark.read.format("triplicate-changes").option("metadataServiceUri", metadata_uri)
    feed.option("database", DATABASE).option("table", "flights").load().write.mode("overwrite").parquet(str(folder))
    kinds = spark.read.parquet(str(folder)).groupBy("_change_type").count().collect()
    return {row["_change_type"]: row["count"] for row in kinds}


def aggregate(spark: SparkSession, folder: Path, metadata_uri: str) -> dict[str, Any]:
    """Rebuild the table from its changes, join it with the airlines of the database, and aggregate.

    Returns:
        `rows`; `by_airline` and `by_hour` as name to (flights, sum of delays); `worst_routes` as (route, flights, sum).
    """
    changes = spark.read.parquet(str(folder)).where("_change_type <> 'update_preimage'")
    newest = Window.partitionBy(*FLIGHT_KEY).orderBy(F.desc("_commit_version"), F.desc("_seq"))
    table = changes.withColumn("_place", F.row_number().over(newest)).where("_place = 1 AND _change_type <> 'delete'").cache()
    feed = spark.read.format("triplicate-changes").option("metadataServiceUri", metadata_uri)
    airlines = feed.option("database", DATABASE).option("table", "airlines").load().select("carrier", "name")
    left = table.where("dep_delay IS NOT NULL")
    figures = (F.count("*").alias("flights"), F.sum("dep_delay").alias("minutes"))
    by_airline = left.join(F.broadcast(airlines), "carrier").groupBy("name").agg(*figures).collect()
    by_hour = left.groupBy("hour").agg(*figures).collect()
    routes = left.groupBy(F.concat_ws("-", "origin", "dest").alias("route")).agg(*figures).where(F.col("flights") >= ROUTE_FLIGHTS_MIN)
    worst = routes.orderBy(F.desc(F.col("minutes") / F.col("flights")), "route").limit(10).collect()
    return {
        "rows": table.count(),
        "by_airline": {row["name"]: (row["flights"], row["minutes"]) for row in by_airline},
        "by_hour": {row["hour"]: (row["flights"], row["minutes"]) for row in by_hour},
        "worst_routes": [(row["route"], row["flights"], row["minutes"]) for row in worst],
    }


def read_log(spark: SparkSession, metadata_uri: str) -> Any:
    """Offsets and keys of the whole log, in order, as an Arrow table for comparison with the original file."""
    source = spark.read.format("triplicate").option("metadataServiceUri", metadata_uri).option("log", LOG)
    return source.load().select("offset", "key").toArrow().sort_by("offset")
