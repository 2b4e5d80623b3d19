"""A database of real nodes over bookies in memory, with servers that psycopg reaches, and its tables as the sources use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition, WriterCommitMessage
from pyspark.sql.types import StructType

from tests.unit.spark.feed_stand import struct_of
from tests.unit.sql.cluster import Cluster
from tests.unit.sql.pg.node_rig import ServedCluster
from triplicate.blocking import BackgroundLoop
from triplicate.log import LogSettings
from triplicate.spark.cluster import access, database_tables
from triplicate.spark.cluster.access import LogAccess
from triplicate.spark.cluster.table_content import quoted
from triplicate.spark.core.given_options import ClientOptions
from triplicate.spark.tables.table_source import TableDataSource

SOURCE = "source"
Row = dict[str, Any]


class TableStand:
    """Attributes: cluster: its database is ``db``. connection: to the node that led first."""

    def __init__(self, loop: BackgroundLoop, cluster: Cluster, served: ServedCluster) -> None:
        self.loop = loop
        self.cluster = cluster
        self.served = served
        self.access = LogAccess(loop, cluster.logs["admin"])
        self.connection: psycopg.Connection[Any] = database_tables.leader_connection("memory:", "db")

    def must(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def clear(self) -> None:
        """Drop all tables and views."""
        found = self.rows(
            "select type, name from sqlite_schema where type in ('view', 'table') and name not like 'triplicate%' order by 1 desc"
        )
        self.must(*(f"drop {kind} {quoted(name)}" for kind, name in found if not name.startswith("sqlite_")))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query).fetchall()

    def read(self, schema: StructType | None = None, **options: str) -> list[Row]:
        """All rows of a read, as Spark's driver and tasks call the source."""
        source = TableDataSource(given(options))
        reader = source.reader(struct_of(str(source.schema())) if schema is None else schema)
        return rows_of(reader, reader.partitions())

    def write(self, *tasks: pa.RecordBatch, overwrite: bool = False, **options: str) -> None:
        """A batch job with a task for each batch of rows."""
        (schema,) = {str(task.schema): task.schema for task in tasks}.values()
        writer = TableDataSource(given(options)).writer(schema_of(schema), overwrite)
        messages: list[WriterCommitMessage | None] = [writer.write(iter([task])) for task in tasks]
        try:
            writer.commit(messages)
        except Exception:
            writer.abort(messages)
            raise

    def staged(self) -> list[int]:
        """Staging ledgers that are left."""
        ledgers = self.cluster.stage.bookies.ledgers
        return [ledger_id for ledger_id in ledgers if "staging" in ledgers[ledger_id].metadata.custom]


def rows_of(reader: Any, parts: Iterable[InputPartition]) -> list[Row]:
    """The rows of some tasks."""
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def given(options: dict[str, str]) -> dict[str, str]:
    return {"metadataServiceUri": "memory:", "database": "db", **options}


def schema_of(schema: pa.Schema) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


@contextmanager
def table_stand(monkeypatch: pytest.MonkeyPatch, folder: Path, nodes: int = 1) -> Iterator[TableStand]:
    loop = BackgroundLoop("tables")

    async def make() -> tuple[Cluster, ServedCluster]:
        cluster = Cluster(folder)
        await cluster.create(lease_s=0.0)
        for index in range(nodes):
            await cluster.start(f"n{index + 1}")
        await cluster.leader()
        served = ServedCluster(cluster, AsyncExitStack())
        for name in cluster.nodes:
            await served.server(name)
        await cluster.logs["admin"].create(SOURCE, LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1))
        return cluster, served

    async def end(cluster: Cluster, served: ServedCluster) -> None:
        await served.held.aclose()
        await cluster.stop()

    cluster, served = loop.call(make())

    @contextmanager
    def logs(metadata_uri: str, ledger_password: str = "", keys_file: str = "", client: ClientOptions = ()) -> Iterator[LogAccess]:
        yield made.access

    def info(*_: object) -> SimpleNamespace:
        """The entry of this database in the list of databases."""
        leader = cluster.leader_name()
        running = {name: server for name, server in served._servers.items() if name in cluster.nodes}
        nodes = [
            SimpleNamespace(address="{}:{}".format(*server.address), role="leader" if name == leader else "follower")
            for name, server in running.items()
        ]
        (log,) = (name for name in loop.call(cluster.logs["admin"].names()) if name.startswith("database."))
        return SimpleNamespace(name="db", log=log, nodes=nodes, has_tls=False)

    monkeypatch.setattr(access, "logs", logs)
    monkeypatch.setattr(database_tables, "_info", info)
    made = TableStand(loop, cluster, served)
    try:
        yield made
    finally:
        made.connection.close()
        loop.call(end(cluster, served))
        loop.close()
