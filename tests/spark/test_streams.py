"""Streaming reads and writes of logs through Spark."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.conftest import Bench, needs_limits
from triplicate.client import Client
from triplicate.log import Logs, LogSettings


@needs_limits
def test_a_stream_delivers_every_record_once_in_batches_of_the_size_asked_for(bench: Bench) -> None:
    log = bench.new_log()
    bench.write(log, range(100))
    seen: list[tuple[int, list[int]]] = []
    query = (
        bench.stream(log, maxOffsetsPerTrigger="30")
        .writeStream.foreachBatch(lambda frame, batch: seen.append((batch, [row["offset"] for row in frame.collect()])))
        .option("checkpointLocation", str(bench.folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [(batch, len(offsets)) for batch, offsets in seen] == [(0, 30), (1, 30), (2, 30), (3, 10)]
    assert sorted(offset for _, offsets in seen for offset in offsets) == list(range(100))
    assert query.lastProgress is not None
    log_id = bench.run(lambda client: Logs(client).head(log)).log_id
    assert json.loads(query.lastProgress["sources"][0]["endOffset"]) == {"ids": {log: log_id}, "logs": {log: 100}, "v": 2}


@needs_limits
def test_a_stream_copies_exactly_once_across_restarts(bench: Bench) -> None:
    source, target = bench.new_log(), bench.new_log()
    bench.write(source, range(50))
    bench.copy(source, target, "checkpoint", maxOffsetsPerTrigger="20").awaitTermination()
    assert bench.values(target) == list(range(50))
    # As if the process had ended after the last batch was published and before Spark recorded it.
    commits = sorted((bench.folder / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    _forget(commits[-1])
    bench.write(source, range(50, 60))
    bench.copy(source, target, "checkpoint", maxOffsetsPerTrigger="20").awaitTermination()
    assert bench.values(target) == list(range(60))
    assert bench.staging_ledgers(target) == []


def _forget(commit: Path) -> None:
    commit.unlink()
    commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)


def test_a_commit_that_raised_after_publishing_loses_and_doubles_nothing(bench: Bench) -> None:
    source, target = bench.new_log(), bench.new_log()
    bench.write(source, range(20))
    bench.spark.dataSource.register(_failing_source(str(bench.folder / "failed")))
    checkpoint = str(bench.folder / "checkpoint")

    def run() -> None:
        frame = bench.stream(source).select("value")
        writer = frame.writeStream.format("triplicate-failing").options(**bench.named(target)).trigger(availableNow=True)
        writer.option("checkpointLocation", checkpoint).start().awaitTermination()

    with pytest.raises(StreamingQueryException, match="lost after publishing"):
        run()
    assert bench.values(target) == list(range(20)), "Spark has called abort, with the messages of what is published"
    run()
    assert bench.values(target) == list(range(20))
    assert bench.staging_ledgers(target) == []


def _failing_source(marker: str) -> type:
    """The source with a writer whose first commit fails after publishing. Defined locally so that it is pickled by value."""
    import os

    from triplicate.spark import TriplicateDataSource
    from triplicate.spark.core.log_options import write_options
    from triplicate.spark.logs.writing import StreamPublisher

    class Failing(StreamPublisher):
        def commit(self, messages: list, batchId: int) -> None:  # type: ignore[type-arg]
            StreamPublisher.commit(self, messages, batchId)
            if not os.path.exists(marker):
                open(marker, "w").close()
                raise RuntimeError("the answer was lost after publishing")

    class FailingSource(TriplicateDataSource):
        @classmethod
        def name(cls) -> str:
            return "triplicate-failing"

        def streamWriter(self, schema: object, overwrite: bool) -> StreamPublisher:
            return Failing(write_options(dict(self.options), streaming=True))

    for made in (Failing, FailingSource):
        made.__module__ = "__main__"
    return FailingSource


def test_a_stream_whose_records_were_truncated_fails_unless_loss_is_allowed(bench: Bench) -> None:
    source, target = bench.new_log(), bench.new_log()
    bench.write(source, range(10))
    bench.copy(source, target, "checkpoint").awaitTermination()
    bench.write(source, range(10, 20))
    bench.write(source, range(20, 30))
    bench.run(lambda client: Logs(client).truncate(source, 20))
    with pytest.raises(StreamingQueryException, match="failOnDataLoss=false"):
        bench.copy(source, target, "checkpoint").awaitTermination()
    shutil.copytree(bench.folder / "checkpoint", bench.folder / "again")
    bench.copy(source, target, "again", failOnDataLoss="false").awaitTermination()
    assert bench.values(target) == [*range(10), *range(20, 30)]


def test_a_stream_of_a_recreated_log_fails_unless_loss_is_allowed(bench: Bench) -> None:
    source, target = bench.new_log(), bench.new_log()
    bench.write(source, range(10))
    bench.copy(source, target, "checkpoint").awaitTermination()

    async def make_again(client: Client) -> None:
        await Logs(client).delete(source)
        await Logs(client).create(source, LogSettings())

    bench.run(make_again)
    bench.write(source, range(10, 25))
    with pytest.raises(StreamingQueryException, match="was deleted and created again"):
        bench.copy(source, target, "checkpoint").awaitTermination()
    bench.copy(source, target, "checkpoint", failOnDataLoss="false").awaitTermination()
    bench.copy(source, target, "checkpoint").awaitTermination()
    assert bench.values(target) == list(range(25))


def test_a_checkpoint_without_ids_is_read(bench: Bench) -> None:
    source, target = bench.new_log(), bench.new_log()
    bench.write(source, range(10))
    bench.copy(source, target, "checkpoint").awaitTermination()
    for written in (bench.folder / "checkpoint" / "offsets").glob("[0-9]*"):
        *head, last = written.read_text().splitlines()
        assert json.loads(last)["v"] == 2
        written.write_text("\n".join([*head, json.dumps({"logs": json.loads(last)["logs"], "v": 1})]))
        written.with_name(f".{written.name}.crc").unlink(missing_ok=True)
    bench.write(source, range(10, 15))
    bench.copy(source, target, "checkpoint").awaitTermination()
    assert bench.values(target) == list(range(15))


def test_a_stream_from_the_latest_offset_begins_with_an_empty_batch(bench: Bench) -> None:
    """The empty batch records the beginning in the checkpoint before any record is delivered."""
    source, target = bench.new_log(), bench.new_log()
    bench.write(source, range(10))
    bench.copy(source, target, "checkpoint", startingOffsets="latest").awaitTermination()
    first = (bench.folder / "checkpoint" / "offsets" / "0").read_text().splitlines()[-1]
    assert json.loads(first)["logs"] == {source: 10}
    bench.write(source, range(10, 15))
    bench.copy(source, target, "checkpoint", startingOffsets="latest").awaitTermination()
    assert bench.values(target) == list(range(10, 15))


@pytest.mark.parametrize("pause", ["0 seconds", "200 milliseconds"])
def test_a_running_stream_follows_its_log(bench: Bench, pause: str) -> None:
    """The batch that ends `processAllAvailable` must read the log's end after the call: without a pause it reads again at once."""
    source, target = bench.new_log(), bench.new_log()
    frame = bench.stream(source).select("value")
    writer = frame.writeStream.format("triplicate").options(**bench.named(target)).trigger(processingTime=pause)
    query = writer.option("checkpointLocation", str(bench.folder / "checkpoint")).option("txnAppId", "copy").start()
    try:
        for first in (0, 5, 10):
            bench.write(source, range(first, first + 5))
            query.processAllAvailable()
            assert bench.values(target) == list(range(first + 5))
    finally:
        query.stop()


@needs_limits
def test_several_logs_are_one_stream(bench: Bench) -> None:
    logs = [bench.new_log(), bench.new_log()]
    for log in logs:
        bench.write(log, range(10))
    source = bench.spark.readStream.format("triplicate").option("metadataServiceUri", bench.uri).option("subscribe", ",".join(logs))
    batches: list[list[tuple[str, int]]] = []
    query = (
        source.option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "12")
        .load()
        .writeStream.foreachBatch(lambda frame, _: batches.append([(row["log"], row["offset"]) for row in frame.collect()]))
        .option("checkpointLocation", str(bench.folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [len(batch) for batch in batches] == [12, 8]
    assert sorted(row for batch in batches for row in batch) == sorted((log, offset) for log in logs for offset in range(10))


@needs_limits
def test_a_pattern_with_all_limits_is_one_stream(bench: Bench) -> None:
    prefix = f"many-{uuid.uuid4().hex[:8]}"
    for end in ("a", "b"):
        bench.create_log(f"{prefix}-{end}")
        bench.write(f"{prefix}-{end}", range(50))
    source = bench.spark.readStream.format("triplicate").option("metadataServiceUri", bench.uri)
    source = source.option("subscribePattern", f"{prefix}-.*").option("startingTimestamp", "0")
    frame = source.options(maxOffsetsPerTrigger="40", maxBytesPerTrigger="100000", minOffsetsPerTrigger="30").load()
    writer = frame.writeStream.format("parquet").option("path", str(bench.folder / "out")).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(bench.folder / "checkpoint")).start()
    assert query.awaitTermination(60)
    assert bench.spark.read.parquet(str(bench.folder / "out")).count() == 100
    assert [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]] == [40, 40, 20]
