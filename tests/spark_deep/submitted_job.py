"""A job for ``spark-submit``: writes a log, reads it, and copies it into another. Arguments: metadata URI, source, target, checkpoint.

Prints where the tasks found Triplicate.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession


def places(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import triplicate

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"place": [triplicate.__file__] * batch.num_rows})


def main() -> None:
    uri, source, target, checkpoint = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    numbers = spark.range(0, 50, numPartitions=2).selectExpr("cast(id AS string) AS value")
    options = {"metadataServiceUri": uri, "log": source}
    numbers.write.format("triplicate").mode("append").options(**options).save()
    rows = spark.read.format("triplicate").options(**options, minPartitions="2").load()
    print([row.place for row in rows.mapInArrow(places, "place string").distinct().collect()])
    stream = spark.readStream.format("triplicate").options(**options, startingOffsets="earliest").load().select("value")
    writer = stream.writeStream.format("triplicate").options(metadataServiceUri=uri, log=target, checkpointLocation=checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
