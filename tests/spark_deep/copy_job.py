"""The job that `test_kill.py` kills: copies one log into another in small batches. Arguments: metadata URI, source, target, folder."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from triplicate.spark import session


def copy(spark: SparkSession, uri: str, source: str, target: str, folder: Path) -> None:
    """Copy what the source holds now; a copy that was broken off goes on from the folder's checkpoint."""
    reader = spark.readStream.format("triplicate").option("metadataServiceUri", uri).option("log", source)
    stream = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "40").load().select("value")
    writer = stream.writeStream.format("triplicate").option("metadataServiceUri", uri).option("log", target)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()


def main() -> None:
    uri, source, target, folder = sys.argv[1:]
    copy(session("copy", run_folder=Path(folder) / "spark", cores=2), uri, source, target, Path(folder))


if __name__ == "__main__":
    main()
