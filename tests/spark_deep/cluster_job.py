"""The jobs that `test_standalone.py` kills, on a cluster. Arguments: JSON as `Job` has it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from triplicate.spark import session


@dataclass(frozen=True)
class Job:
    """A stream from one log into others, or from one table into another, until the source's present end, on the cluster at `master`.

    Args:
        target: with `routed` the begin of the names of three logs. batch_records: records, or transactions, of a batch; few, so that there
            is time to kill a process.
        database: where `source` and `target` are tables; empty: they are logs.
    """

    master: str
    uri: str
    source: str
    target: str
    folder: str
    batch_records: int
    speculation: bool
    routed: bool = False
    database: str = ""

    def command(self) -> list[str]:
        return [sys.executable, __file__, json.dumps(asdict(self))]


def settings(job: Job) -> dict[str, str]:
    """Settings beside those of a local session."""
    found = {
        "spark.master": job.master,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.task.maxFailures": "8",
    }
    if job.speculation:
        # Every task that takes longer than half of the others' median is started a second time.
        found |= {
            "spark.speculation": "true",
            "spark.speculation.interval": "50ms",
            "spark.speculation.quantile": "0.1",
            "spark.speculation.multiplier": "1.01",
            "spark.speculation.minTaskRuntime": "0ms",
        }
    return found


def run(spark: SparkSession, job: Job) -> None:
    at = {"metadataServiceUri": job.uri}
    if job.database:
        at["database"] = job.database
        feed = spark.readStream.format("triplicate-changes").options(**at, table=job.source, startingVersion="snapshot")
        # Tasks have rows of several transactions, in the order of the feed.
        stream = feed.option("maxVersionsPerTrigger", str(job.batch_records)).load()
        writer = stream.writeStream.format("triplicate-table").options(**at, table=job.target, action="changes")
    else:
        reader = spark.readStream.format("triplicate").options(**at, log=job.source, startingOffsets="earliest")
        stream = reader.option("maxOffsetsPerTrigger", str(job.batch_records)).option("recordsPerPartition", "5").load().select("value")
        if job.routed:
            stream = stream.selectExpr("value", f"concat('{job.target}-', cast(string(value) AS bigint) % 3) AS log")
            writer = stream.writeStream.format("triplicate").options(**at)
        else:
            writer = stream.writeStream.format("triplicate").options(**at, log=job.target)
    checkpoint = str(Path(job.folder) / "checkpoint")
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    run(session("copy", run_folder=Path(job.folder) / "spark", cores=2, extra=settings(job)), job)


if __name__ == "__main__":
    main()
