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
    """A stream from one log into another until the source's present end, on the cluster at `master`.

    Args:
        batch_records: records per batch; few, so that there is time to kill a process.
    """

    master: str
    uri: str
    source: str
    target: str
    folder: str
    batch_records: int
    speculation: bool

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
    options = {"metadataServiceUri": job.uri, "log": job.source, "startingOffsets": "earliest"}
    reader = spark.readStream.format("triplicate").options(**options)
    stream = reader.option("maxOffsetsPerTrigger", str(job.batch_records)).option("recordsPerPartition", "5").load().select("value")
    writer = stream.writeStream.format("triplicate").option("metadataServiceUri", job.uri).option("log", job.target)
    checkpoint = str(Path(job.folder) / "checkpoint")
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    run(session("copy", run_folder=Path(job.folder) / "spark", cores=2, extra=settings(job)), job)


if __name__ == "__main__":
    main()
