"""Reads a log with Spark's own functions for Avro, and writes it back into another: avro_job.py JAR URI SOURCE TARGET FOLDER."""

from __future__ import annotations

import sys

from triplicate.spark import session

SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": ["null", "string"]}]}'


def main(jar: str, uri: str, source: str, target: str, folder: str) -> None:
    spark = session("avro", run_folder=folder, cores=2, extra={"spark.jars": jar})
    from pyspark.sql.avro.functions import from_avro, to_avro

    rows = spark.read.format("triplicate").options(metadataServiceUri=uri, log=source).load()
    orders = rows.select(from_avro("value", SCHEMA).alias("order"))
    print(orders.selectExpr("order.id", "order.item").toArrow().to_pylist())
    written = orders.select(to_avro("order", SCHEMA).alias("value"))
    written.write.format("triplicate").mode("append").options(metadataServiceUri=uri, log=target).save()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
