"""The demonstration, step by step: Spark → log → Spark → database → Spark, with servers killed on the way, and the proof that nothing was
lost."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from triplicate.cli import LocalCluster, remarks, run_loop
from triplicate.client import Client
from triplicate.sql import create_database, database_info
from triplicate_demo import audit, security_audit
from triplicate_demo.dataset import FLIGHT_KEY, Dataset, Expected, read_flights
from triplicate_demo.demo_access import KEYS_VARIABLE, DemoAccess
from triplicate_demo.demo_folder import DemoFolder
from triplicate_demo.demo_logs import demo_key, demo_logs
from triplicate_demo.findings import Findings
from triplicate_demo.flight_loader import FlightLoader, create_schema, load_small_table
from triplicate_demo.plot import draw
from triplicate_demo.server_killer import ServerKiller

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")

RECORDS_PER_BATCH = 20_000
PARTITIONS = 4
CATCH_UP_S = 60.0


class Flow:
    """One run of the demonstration on a running cluster.

    Args:
        cluster: four bookies and three database nodes.
        place: folder for results, and for the checkpoint and the changes below its `work`.
        dataset: the input.
        expected: figures that pandas derived from it.
    """

    def __init__(self, cluster: LocalCluster, place: DemoFolder, dataset: Dataset, expected: Expected, findings: Findings) -> None:
        self._cluster = cluster
        self._place = place
        self._dataset = dataset
        self._expected = expected
        self._findings = findings
        self._uri = cluster.folder.metadata_uri
        nodes = [member for member in cluster.folder.members if member.kind == "node"]
        self._nodes = nodes
        self._access = DemoAccess(cluster.folder)
        self._dsn = self._access.dsn("flights")
        self._database_log = ""

    def run(self, spark: SparkSession) -> None:
        """All steps after the start of cluster and Spark."""
        self._prepare()
        self._ingest(spark)
        self._load_small(spark)
        killer = self._load_flights(spark)
        self._analyse(spark)
        self._audit(spark, killer)
        if self._access.is_secured:
            self._audit_security(killer)

    def _with_client(self, body: Callable[[Client], Awaitable[Result]]) -> Result:
        async def main() -> Result:
            async with self._access.client() as client:
                return await body(client)

        return run_loop(main())

    # Steps 1 and 2.

    def _prepare(self) -> None:
        from triplicate_demo.spark_jobs import DATABASE, LOG

        async def make(client: Client) -> str:
            logs, key_id = demo_logs(client), demo_key()
            await logs.create(LOG, key_id=key_id)
            await create_database(client, DATABASE, logs=logs, key_id=key_id, administrator=self._access.administrator(client))
            return (await database_info(client, DATABASE)).log

        with self._findings.stage("create log and database"):
            self._database_log = self._with_client(make)
            create_schema_when_ready(self._dsn)

    def _ingest(self, spark: SparkSession) -> None:
        from triplicate_demo import spark_jobs

        with self._findings.stage("ingest: Spark to log") as stage, spark_jobs.progress(spark, "ingest"):
            spark_jobs.ingest(spark, self._uri, self._dataset, PARTITIONS)
            first, stage.bytes = self._log_state(spark_jobs.LOG)
            stage.records = first
        with self._findings.stage("the same ingest again"):
            spark_jobs.ingest(spark, self._uri, self._dataset, PARTITIONS)
            again, _ = self._log_state(spark_jobs.LOG)
        self._findings.records_ingested = again
        self._findings.check("every flight was ingested", first == self._expected.flights, f"{first:,} of {self._expected.flights:,}")
        self._findings.check("ingesting again added nothing", again == first, f"{again - first:,} records more")

    def _log_state(self, log: str) -> tuple[int, int]:
        """(records, bytes of segments) in a log."""

        async def read_state(client: Client) -> tuple[int, int]:
            logs = demo_logs(client)
            segments = await logs.segments(log)
            return await logs.end_offset(log), sum(segment.size_bytes for segment in segments)

        return self._with_client(read_state)

    # Steps 3 and 4.

    def _load_small(self, spark: SparkSession) -> None:
        from triplicate_demo.spark_jobs import small_table

        with self._findings.stage("load the four small tables") as stage:
            for table, path in self._dataset.small.items():
                count = load_small_table(self._dsn, table, small_table(spark, path))
                stage.records += count
                stage.bytes += path.stat().st_size
                self._findings.check(f"table {table} is whole", count == self._expected.small[table], f"{count:,} rows")

    def _load_flights(self, spark: SparkSession) -> ServerKiller:
        from triplicate_demo.spark_jobs import load_stream

        killer = ServerKiller(self._cluster, lambda: self._with_client(self._ensemble)[1])
        journal = self._place.path / "acknowledged.jsonl"
        journal.unlink(missing_ok=True)
        loader = FlightLoader(self._dsn, journal, killer.act)
        try:
            with self._findings.stage("load: log to database, servers killed") as stage:
                load_stream(spark, self._uri, self._place.work / "checkpoint", RECORDS_PER_BATCH, loader.load)
                stage.records = sum(one.flights for one in loader.report.acknowledged)
                stage.bytes = loader.report.bytes
            if not killer.restarted_at:
                killer.restart()
        finally:
            loader.close()
        report = loader.report
        for outcome in report.outcomes:
            remarks.print(f"  queried after the kill: {outcome}")
        findings = self._findings
        findings.acknowledged = len(report.acknowledged)
        findings.seconds_without_leader = report.seconds_without_leader
        findings.killed = killer.killed
        findings.restarted_at = killer.restarted_at
        findings.check("the restarted node went on from its own copy", min(killer.restarted_at.values()) > 0, "it began at position 0")
        epoch, _ = self._with_client(self._ensemble)
        findings.take_overs = epoch - 1
        findings.check("at least one take-over", findings.take_overs >= 1)
        logged = self._with_client(lambda client: audit.logged_transactions(client, self._database_log))
        complaints = audit.missing_transactions(report.acknowledged, logged)
        findings.missing += len(complaints)
        findings.check("every acknowledged transaction is there once, in order", not complaints, "; ".join(complaints[:3]))
        return killer

    async def _ensemble(self, client: Client) -> tuple[int, list[str]]:
        return await audit.database_log_state(client, self._database_log)

    # Step 5.

    def _analyse(self, spark: SparkSession) -> None:
        from triplicate_demo import spark_jobs

        findings, expected = self._findings, self._expected
        changes = self._place.work / "changes"
        with findings.stage("change feed to Parquet") as stage, spark_jobs.progress(spark, "change feed"):
            findings.changes = spark_jobs.archive_changes(spark, self._uri, changes)
            stage.records = sum(findings.changes.values())
            stage.bytes = sum(file.stat().st_size for file in changes.glob("*.parquet"))
        with findings.stage("join and aggregate, compare with pandas") as read, spark_jobs.progress(spark, "aggregate"):
            found = spark_jobs.aggregate(spark, changes, self._uri)
            read.records = findings.rows = found["rows"]
            read.bytes = stage.bytes
        wanted = {"insert": expected.flights, "update_postimage": expected.late, "delete": expected.cancelled}
        findings.check("the feed has every insert, update and delete", findings.changes == wanted, f"{findings.changes}, not {wanted}")
        findings.check("as many flights remain as left", found["rows"] == expected.remaining, f"{found['rows']:,}")
        for name, mine, theirs in (
            ("delays by airline equal pandas'", found["by_airline"], expected.by_airline),
            ("delays by hour equal pandas'", found["by_hour"], expected.by_hour),
            ("the worst ten routes equal pandas'", found["worst_routes"], expected.worst_routes),
        ):
            findings.check(name, mine == theirs and _means(mine) == _means(theirs), f"{mine} is not {theirs}")
        killed = ", ".join(findings.killed)
        caption = (
            f"{findings.records_ingested:,} flights through log, database and change feed; killed on the way: {killed}; "
            f"{findings.missing} lost. Equal to pandas on the original file, to the minute."
        )
        draw(
            self._place.path / "flights.png",
            by_airline=found["by_airline"],
            by_hour=found["by_hour"],
            worst_routes=found["worst_routes"],
            caption=caption,
        )

    # Step 6.

    def _audit(self, spark: SparkSession, killer: ServerKiller) -> None:
        from triplicate_demo.spark_jobs import read_log

        findings = self._findings
        with findings.stage("compare the log with the original file") as stage:
            table = read_log(spark, self._uri)
            stage.records, stage.bytes = table.num_rows, table.nbytes
            offsets = table.column("offset").to_pylist()
            keys = [key.decode() for key in table.column("key").to_pylist()]
            flights = read_flights(self._dataset)
            wanted = ["|".join(str(part) for part in key) for key in zip(*(flights[name] for name in FLIGHT_KEY), strict=True)]
            lost = len(set(wanted) - set(keys))
            findings.missing += lost
            findings.check("every record is in the log once, in order", keys == wanted, f"{lost:,} missing")
            findings.check("offsets have no gaps", offsets == list(range(len(wanted))))
        surviving = [m.name for m in self._cluster.folder.members if m.kind == "bookie" and m.name != killer.killed_bookie]
        with findings.stage("read every bookie on its own") as stage:
            copies = self._with_client(lambda client: audit.compare_copies(client, surviving))
            stage.records, stage.bytes = copies.copies, copies.bytes
        findings.differing_copies = copies.differing
        findings.under_replicated = copies.under_replicated
        findings.ensemble_changes = copies.ensemble_changes
        findings.check("at least one ensemble change", copies.ensemble_changes >= 1)
        findings.check("no two copies differ", copies.differing == 0, "; ".join(copies.details[:3]))
        findings.check("no entry is without a copy", copies.without_copy == 0, "; ".join(copies.details[:3]))
        with findings.stage("compare the three database copies") as stage:
            files = self._database_files()
            complaints, copy = audit.compare_databases(files, timeout_s=CATCH_UP_S)
            stage.records, stage.bytes = copy.rows * len(files), sum(file.stat().st_size for file in files)
        findings.check("the three database copies are equal, rowids and schema included", not complaints, "; ".join(complaints[:3]))
        cancelled = sum(int(row[-1]) for row in copy.tables.get("cancellations", []))
        findings.check("cancelled flights were counted", cancelled == self._expected.cancelled, f"{cancelled:,}")

    def _audit_security(self, killer: ServerKiller) -> None:
        from triplicate_demo.spark_jobs import LOG

        findings, folder = self._findings, self._cluster.folder
        bookies = [m.name for m in folder.members if m.kind == "bookie" and m.name != killer.killed_bookie]
        logs = (LOG, self._database_log)
        with findings.stage("try the doors without credentials, look for secrets"):
            opened = run_loop(security_audit.open_bookies(self._uri, bookies))
            opened += security_audit.open_nodes(self._dsn, [node.port for node in self._nodes])
            plain = self._with_client(lambda client: security_audit.plain_logs(client, logs, demo_key()))
            files = [*folder.path.glob("*/*log"), *self._place.work.glob("spark/*.log"), *self._place.path.glob("*.jsonl")]
            shown = security_audit.shown_secrets(security_audit.secrets_of(folder, os.environ[KEYS_VARIABLE]), files)
        findings.check("bookies and database nodes refuse clients without credentials", not opened, "; ".join(opened[:3]))
        findings.check("the logs of flights and database are encrypted", not plain, "; ".join(plain))
        findings.check("no secret is in a log or on a command line", not shown, "; ".join(shown[:3]))

    def _database_files(self) -> Sequence[Path]:
        from triplicate.sql import database_file
        from triplicate_demo.spark_jobs import DATABASE

        return [database_file(self._cluster.folder.folder_of(node) / "data", DATABASE) for node in self._nodes]


def _means(figures: Any) -> list[Any]:
    """Means of (flights, minutes), from either form; compared after counts and sums."""
    if isinstance(figures, dict):
        return sorted((name, round(minutes / flights, 9)) for name, (flights, minutes) in figures.items())
    return [(name, round(minutes / flights, 9)) for name, flights, minutes in figures]


def create_schema_when_ready(dsn: str) -> None:
    """Create the tables once a node leads the new database."""
    import time

    import psycopg

    deadline = time.monotonic() + CATCH_UP_S
    while True:
        try:
            create_schema(dsn)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return
