"""The compared sides: our logs, and Kafka's topics as shipped and with a flush before each acknowledgement."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from benchmarks.ledger.processes import BUILD, Process
from benchmarks.spark.kafka import BROKERS
from triplicate.blocking import connect

PARTITIONS = 4
"""Tasks of a write, and partitions of a topic: Kafka's connector reads each by one task. Ours cuts a read by its number of records."""
TOPIC_LIMIT_S = 30.0


class Side(Protocol):
    """Where records are written to and read from."""

    name: str

    def create(self, log: str) -> None:
        """Make a log or topic."""

    def write(self, frame: DataFrame, log: str) -> None:
        """Write the values of a frame."""

    def read(self, log: str) -> DataFrame:
        """All records."""

    def stream(self, log: str) -> DataFrame:
        """All records, and those that come."""

    def produce(self, log: str, rate: int, seconds: float) -> Process:
        """Begin a process that writes records at a rate."""


def producer(side: str, place: str, log: str, rate: int, seconds: float) -> Process:
    words = [sys.executable, "-m", "benchmarks.spark.produce", side, place, log, str(rate), str(seconds)]
    return Process(f"producer of {side}", words, Path(BUILD / "logs" / "spark" / f"producer-{side}.log"))


class Ours:
    """Logs with three copies, two of them on disk before a record counts; each write is exactly once."""

    name = "ours"

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._spark = spark
        self._uri = uri

    def create(self, log: str) -> None:
        with connect(self._uri) as client:
            client.logs().create(log)

    def write(self, frame: DataFrame, log: str) -> None:
        writer = frame.write.format("triplicate").mode("append").option("metadataServiceUri", self._uri).option("log", log)
        writer.option("txnAppId", "bench").option("txnVersion", str(time.time_ns())).save()

    def _options(self, log: str) -> dict[str, str]:
        return {"metadataServiceUri": self._uri, "log": log, "startingOffsets": "earliest"}

    def read(self, log: str) -> DataFrame:
        return self._spark.read.format("triplicate").options(**self._options(log)).load()

    def stream(self, log: str) -> DataFrame:
        return self._spark.readStream.format("triplicate").options(**self._options(log)).load()

    def produce(self, log: str, rate: int, seconds: float) -> Process:
        return producer("ours", self._uri, log, rate, seconds)


class Kafka:
    """Topics with three copies, two of them in the page cache before a record counts, or on disk with a flush.

    Spark's connector writes at least once.
    """

    def __init__(self, spark: SparkSession, servers: str, *, flush: bool) -> None:
        from confluent_kafka.admin import AdminClient  # type: ignore[import-not-found]  # Only in the environment of this benchmark.

        self.name = "kafka_flushed" if flush else "kafka"
        self._spark = spark
        self._servers = servers
        self._flush = flush
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})

    def create(self, log: str) -> None:
        from confluent_kafka.admin import NewTopic

        config = {"flush.messages": "1"} if self._flush else {}
        made = self._admin.create_topics([NewTopic(self._topic(log), PARTITIONS, BROKERS, config=config)])
        for each in made.values():
            each.result(TOPIC_LIMIT_S)

    def _topic(self, log: str) -> str:
        return f"{self.name}-{log}"

    def _options(self, log: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self._servers, "subscribe": self._topic(log), "startingOffsets": "earliest"}

    def write(self, frame: DataFrame, log: str) -> None:
        writer: Any = frame.write.format("kafka").option("kafka.bootstrap.servers", self._servers).option("topic", self._topic(log))
        writer.save()

    def read(self, log: str) -> DataFrame:
        return self._spark.read.format("kafka").options(**self._options(log)).load()

    def stream(self, log: str) -> DataFrame:
        return self._spark.readStream.format("kafka").options(**self._options(log)).load()

    def produce(self, log: str, rate: int, seconds: float) -> Process:
        return producer("kafka", self._servers, self._topic(log), rate, seconds)
