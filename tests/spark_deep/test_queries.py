"""Queries between two logs: windows with a watermark, and `foreachBatch`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from tests.spark.conftest import Bench

MINUTE_US = 60_000_000


def test_windows_behind_a_watermark_are_counted_once_over_a_restart(bench: Bench) -> None:
    source, target = bench.new_log(), bench.new_log()

    def write(minutes: range) -> None:
        frame = bench.spark.range(minutes.start, minutes.stop, numPartitions=2)
        rows = frame.selectExpr("cast(id AS string) AS value", f"timestamp_micros(id * {MINUTE_US}) AS timestamp")
        rows.write.format("triplicate").mode("append").options(**bench.named(source)).save()

    def count() -> None:
        windows = (
            bench.stream(source, maxOffsetsPerTrigger="13")
            .withWatermark("timestamp", "2 minutes")
            .selectExpr("timestamp", "window(timestamp, '5 minutes') AS span")
            .groupBy("span")
            .count()
        )
        rows = windows.selectExpr("to_json(struct(unix_timestamp(span.start) DIV 60 AS minute, count)) AS value")
        writer = rows.writeStream.format("triplicate").options(**bench.named(target)).outputMode("append").trigger(availableNow=True)
        writer.option("checkpointLocation", str(bench.folder / "windows")).start().awaitTermination()

    write(range(40))
    count()
    write(range(40, 81))
    count()
    found = [json.loads(row["value"]) for row in bench.reader(target).load().select("value").collect()]
    counts = {row["minute"]: row["count"] for row in found}
    assert len(counts) == len(found), "a window is there twice"
    # The watermark ends two minutes before the last record, 80: the window of minute 75 ends at it and is still open.
    assert counts == dict.fromkeys(range(0, 75, 5), 5)


def test_a_repeated_foreach_batch_adds_nothing(bench: Bench) -> None:
    source, target = bench.new_log(), bench.new_log()
    bench.write(source, range(30))
    failures = 1

    def publish(batch: DataFrame, version: int) -> None:
        nonlocal failures
        writer: Any = batch.select("value").write.format("triplicate").mode("append").options(**bench.named(target))
        writer.option("txnAppId", "copy").option("txnVersion", str(version)).save()
        if version == 1 and failures:
            failures -= 1
            raise RuntimeError("after the publish, before Spark's commit")

    def run() -> None:
        stream = bench.stream(source, maxOffsetsPerTrigger="10")
        writer = stream.writeStream.foreachBatch(publish).trigger(availableNow=True)
        writer.option("checkpointLocation", str(bench.folder / "each")).start().awaitTermination()

    with pytest.raises(StreamingQueryException, match="after the publish"):
        run()
    run()
    assert bench.values(target) == list(range(30))
