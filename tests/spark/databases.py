"""Databases of real nodes for the tests of Spark."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from tests.spark.conftest import Bench

START_S = 30.0


class Shop:
    """A database with one table and its feed."""

    def __init__(self, bench: Bench, name: str, connection: psycopg.Connection[Any]) -> None:
        self.bench = bench
        self.name = name
        self.connection = connection

    def execute(self, *statements: str) -> None:
        """Run statements as one transaction."""
        with self.connection.transaction():
            for statement in statements:
                self.connection.execute(statement)

    def options(self, table: str = "orders") -> dict[str, str]:
        return {"metadataServiceUri": self.bench.uri, "database": self.name, "table": table}

    def feed(self, **options: str) -> list[tuple[Any, ...]]:
        """Kind, id, amount and place of every change, in order."""
        frame = self.bench.spark.read.format("triplicate-changes").options(**self.options(), **options).load()
        rows = frame.orderBy("_commit_version", "_seq", "_change_type").collect()
        return [(row["_change_type"], row["id"], row["amount"], row["_seq"]) for row in rows]

    def versions(self) -> list[int]:
        frame = self.bench.spark.read.format("triplicate-changes").options(**self.options()).load()
        return [row[0] for row in frame.select("_commit_version").distinct().orderBy("_commit_version").collect()]


def connected(bench: Bench, name: str) -> psycopg.Connection[Any]:
    """A connection to the leader; waits for one."""
    deadline = time.monotonic() + START_S
    place = f"host=127.0.0.1 port={bench.node_port} dbname={name} user=test target_session_attrs=read-write connect_timeout=3"
    while True:
        try:
            return psycopg.connect(place, autocommit=True)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
