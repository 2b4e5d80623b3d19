"""A client of Spark Connect: it has no JVM, and its server imports the sources. Arguments: metadata URI, source, target, folder."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from triplicate.spark import register


def main() -> None:
    uri, source, target, folder = sys.argv[1:]
    spark = SparkSession.builder.remote("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        register(spark)
        numbers = spark.range(0, 50, numPartitions=2).selectExpr("cast(id AS string) AS value")
        options = {"metadataServiceUri": uri, "log": source}
        numbers.write.format("triplicate").mode("append").options(**options).save()
        found = spark.read.format("triplicate").options(**options).load()
        assert found.count() == 50
        stream = spark.readStream.format("triplicate").options(**options, startingOffsets="earliest").load().select("value")
        writer = stream.writeStream.format("triplicate").option("metadataServiceUri", uri).option("log", target)
        query = writer.option("checkpointLocation", str(Path(folder) / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
