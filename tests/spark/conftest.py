"""One cluster of real processes and one Spark session for all tests of this folder: together they take longer to start than the tests."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from triplicate.client import Client, connect
from triplicate.log import Logs, LogSettings

if shutil.which("java") is None:
    pytest.skip("Spark needs Java, and there is none", allow_module_level=True)
pyspark_sql = pytest.importorskip("pyspark.sql", reason="the tests of Spark need PySpark: pip install 'triplicate[spark]'")

from pyspark.sql import DataFrame, SparkSession  # noqa: E402

from triplicate.cli import LocalCluster, local_cluster  # noqa: E402
from triplicate.spark import session  # noqa: E402
from triplicate.spark.cluster import versions  # noqa: E402

Result = TypeVar("Result")
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "spark.md"
needs_limits = pytest.mark.skipif(not versions.HAS_LIMITS, reason="PySpark 4.1 knows no limits on a micro-batch")


@pytest.fixture(scope="session")
def place() -> Iterator[Path]:
    """A folder with a short path, since sockets lie in it."""
    folder = Path(tempfile.mkdtemp(prefix="ts-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster(place: Path) -> Iterator[LocalCluster]:
    with local_cluster(place / "cluster", bookies=3, nodes=1) as running:
        yield running


LITTER = ("spark-", "blockmgr-", "artifacts-", "liblz4", "metastore_db", "derby.log", f"tri-{os.getpid()}-", ".spark")


def litter() -> set[Path]:
    """Name patterns of files that Spark leaves in the temporary and the working directory. Sessions of other processes may run beside."""
    folders = (Path(tempfile.gettempdir()), Path.cwd())
    return {path for folder in folders for path in folder.iterdir() if path.name.startswith(LITTER)}


@pytest.fixture(scope="session")
def litter_before() -> set[Path]:
    """Files that existed before the session."""
    return litter()


@pytest.fixture(scope="session")
def spark(place: Path, litter_before: set[Path]) -> Iterator[SparkSession]:
    made = session("tests", run_folder=place / "spark", cores=2)
    yield made
    made.stop()


class Bench:
    """Helpers of the tests for the cluster and Spark; each test has separate logs."""

    def __init__(self, cluster: LocalCluster, spark: SparkSession, folder: Path, place: Path) -> None:
        self.cluster = cluster
        self.place = place
        self.spark = spark
        self.folder = folder
        self.uri = cluster.folder.metadata_uri
        node = next(member for member in cluster.folder.members if member.kind == "node")
        self.node_port = node.port

    def run(self, body: Callable[[Client], Coroutine[Any, Any, Result]]) -> Result:
        """Run a function with a new client."""

        async def main() -> Result:
            async with asyncio.timeout(60), connect(self.uri) as client:
                return await body(client)

        return asyncio.run(main())

    def new_log(self) -> str:
        name = f"log-{uuid.uuid4().hex[:8]}"
        self.create_log(name)
        return name

    def create_log(self, name: str) -> None:
        self.run(lambda client: Logs(client).create(name, LogSettings()))

    def write(self, log: str, values: range, **options: str) -> None:
        """A batch job with two tasks that publishes numbers as text, with their halves as keys."""
        self.numbers(values).write.format("triplicate").mode("append").options(**self.named(log), **options).save()

    def numbers(self, values: range) -> DataFrame:
        frame = self.spark.range(values.start, values.stop, numPartitions=2)
        return frame.selectExpr(
            "cast(id AS string) AS value",
            "CASE WHEN id % 3 = 0 THEN NULL ELSE cast(cast(id DIV 2 AS string) AS binary) END AS key",
            "timestamp_micros(id) AS timestamp",
        )

    def spark_log(self) -> str:
        """Output of the session so far."""
        return (self.place / "spark" / "spark.log").read_text(encoding="utf-8", errors="replace")

    def named(self, log: str) -> dict[str, str]:
        return {"metadataServiceUri": self.uri, "log": log}

    def reader(self, log: str, **options: str) -> Any:
        return self.spark.read.format("triplicate").options(**self.named(log), **options)

    def values(self, log: str) -> list[int]:
        """Records of a log in the order of offsets, which must have no gaps."""
        rows = self.reader(log).load().select("offset", "value").toArrow().sort_by("offset")
        assert rows["offset"].to_pylist() == list(range(rows.num_rows))
        return [int(value) for value in rows["value"].to_pylist()]

    def stream(self, log: str, **options: str) -> DataFrame:
        source = self.spark.readStream.format("triplicate").options(**self.named(log), startingOffsets="earliest")
        frame: DataFrame = source.options(**options).load()
        return frame

    def copy(self, source: str, target: str, checkpoint: str, **options: str) -> Any:
        """Stream one log into another until the present end; returns the query, whose outcome the caller awaits."""
        frame = self.stream(source, **options).select("key", "value", "timestamp")
        writer = frame.writeStream.format("triplicate").options(**self.named(target)).trigger(availableNow=True)
        return writer.option("checkpointLocation", str(self.folder / checkpoint)).start()

    def staging_ledgers(self, log: str) -> list[int]:
        """Ledgers that were staged for a log and are not its segments."""

        async def ask(client: Client) -> list[int]:
            listed = {segment.ledger_id for segment in await Logs(client).segments(log)}
            found = []
            async for ledger_id in client.ledger_ids():
                custom = (await client.metadata_of(ledger_id)).custom
                if custom.get("log") == log.encode() and ledger_id not in listed:
                    found.append(ledger_id)
            return found

        return self.run(ask)


@pytest.fixture
def bench(cluster: LocalCluster, spark: SparkSession, tmp_path: Path, place: Path) -> Bench:
    return Bench(cluster, spark, tmp_path, place)
