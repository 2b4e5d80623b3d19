"""Loads batches of flights into the database over the PostgreSQL protocol, exactly once, also when its servers are killed.

Each batch is one transaction that also stores (application, batch number), so a repeated batch is skipped. If the connection breaks before
COMMIT is answered, the outcome is unknown: the loader connects to the node that leads now and asks it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from triplicate_demo.dataset import FLIGHT_COLUMNS, FLIGHT_KEY, LATE_MINUTES

APPLICATION = "demo"
GIVE_UP_S = 60.0
RETRY_S = 0.05
SMALL_PART_ROWS = 10_000

_PLANES = "tailnum TEXT PRIMARY KEY, year INTEGER, type TEXT, manufacturer TEXT, model TEXT, engines INTEGER, seats INTEGER"
_WEATHER = "origin TEXT, year INTEGER, month INTEGER, day INTEGER, hour INTEGER, temp REAL, dewp REAL, humid REAL, wind_dir INTEGER"
SCHEMA = (
    f"CREATE TABLE flights ({', '.join(f'{name} {kind}' for name, kind in FLIGHT_COLUMNS)}, PRIMARY KEY ({', '.join(FLIGHT_KEY)}))",
    "CREATE TABLE cancellations (carrier TEXT PRIMARY KEY, flights INTEGER NOT NULL)",
    "CREATE TABLE loads (application TEXT, batch INTEGER, flights INTEGER NOT NULL, PRIMARY KEY (application, batch))",
    "CREATE TABLE airlines (carrier TEXT PRIMARY KEY, name TEXT)",
    "CREATE TABLE airports (faa TEXT PRIMARY KEY, name TEXT, lat REAL, lon REAL, alt INTEGER, tz INTEGER, dst TEXT, tzone TEXT)",
    f"CREATE TABLE planes ({_PLANES}, speed INTEGER, engine TEXT)",
    f"CREATE TABLE weather ({_WEATHER}, wind_speed REAL, wind_gust REAL, precip REAL, pressure REAL, visib REAL, time_hour TEXT)",
)


_TYPES = {name: kind for statement in SCHEMA for name, kind in re.findall(r"(\w+) (INTEGER|REAL|TEXT)", statement)}
"""Declared type by column; columns of one name have one type in all tables."""


def _field(name: str) -> str:
    """A field of a JSON document, with the type of its column."""
    return f"value ->> '{name}'" if _TYPES[name] == "TEXT" else f"CAST(value ->> '{name}' AS {_TYPES[name]})"


def _extract(names: Sequence[str]) -> str:
    return ", ".join(map(_field, names))


_COLUMNS = [name for name, _ in FLIGHT_COLUMNS]
_KEY = ", ".join(FLIGHT_KEY)
_IS_LATE = f"{_field('dep_delay')} > {LATE_MINUTES}"
_IS_CANCELLED = f"{_field('dep_time')} IS NULL"
_SAME_FLIGHT = " AND ".join(f"flights.{name} = {_field(name)}" for name in FLIGHT_KEY)

INSERT = (
    f"INSERT INTO flights ({', '.join(_COLUMNS)}) SELECT "
    + ", ".join(f"CASE WHEN {_IS_LATE} THEN NULL ELSE {_field(n)} END" if n == "dep_delay" else _field(n) for n in _COLUMNS)
    + " FROM json_each(%s)"
)
UPDATE_LATE = f"UPDATE flights SET dep_delay = {_field('dep_delay')} FROM json_each(%s) WHERE {_IS_LATE} AND {_SAME_FLIGHT}"
COUNT_CANCELLED = (
    f"INSERT INTO cancellations (carrier, flights) SELECT {_field('carrier')}, count(*) FROM json_each(%s) WHERE {_IS_CANCELLED}"
    " GROUP BY 1 ON CONFLICT (carrier) DO UPDATE SET flights = cancellations.flights + excluded.flights"
)
DELETE_CANCELLED = f"DELETE FROM flights WHERE ({_KEY}) IN (SELECT {_extract(FLIGHT_KEY)} FROM json_each(%s) WHERE {_IS_CANCELLED})"


@dataclass
class LoadedBatch:
    """One transaction that the database acknowledged to the loader."""

    transaction: int
    batch: int
    flights: int
    asked: bool
    """True when the answer to COMMIT was lost and a later query gave the outcome."""


@dataclass
class LoadReport:
    """Statistics of the loader."""

    acknowledged: list[LoadedBatch] = field(default_factory=list)
    bytes: int = 0
    """Size of the documents sent, each batch counted once."""
    skipped: int = 0
    reconnects: int = 0
    seconds_without_leader: float = 0.0
    outcomes: list[str] = field(default_factory=list)


class FlightLoader:
    """One loader; used by one thread at a time.

    Args:
        dsn: connection string that names every node.
        journal: file that receives each acknowledged transaction as one line of JSON, kept outside of Triplicate.
        before_commit: called with the batch number and the port of the node while the transaction is open, so that the demonstration can
            kill it.
    """

    def __init__(self, dsn: str, journal: Path, before_commit: Callable[[int, int], None]) -> None:
        self._dsn = dsn
        self._journal = journal
        self._before_commit = before_commit
        self._connection: psycopg.Connection[Any] | None = None
        self.report = LoadReport()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def load(self, batch: int, flights: Sequence[str]) -> None:
        """Load one batch. Returns when it is committed, by this call or an earlier one.

        Args:
            flights: one JSON object each.

        Raises:
            psycopg.Error: the database refuses it, or no node led for `GIVE_UP_S`.
        """
        document = "[" + ",".join(flights) + "]"
        self.report.bytes += len(document)
        deadline = time.monotonic() + GIVE_UP_S
        lost_at: float | None = None
        transaction: int | None = None
        while True:
            try:
                connection = self._connected()
                if lost_at is not None:
                    self.report.seconds_without_leader += time.monotonic() - lost_at
                    lost_at = None
                if transaction is not None:
                    status = self._outcome(connection, transaction)
                    self.report.outcomes.append(f"batch {batch}: transaction {transaction} was {status}")
                    if status == "committed":
                        self._note(LoadedBatch(transaction, batch, len(flights), asked=True))
                        return
                    transaction = None
                with connection.transaction():
                    if self._is_loaded(connection, batch):
                        self.report.skipped += 1
                        return
                    transaction = self._number(connection)
                    self._apply(connection, batch, document, len(flights))
                    self._before_commit(batch, connection.info.port)
                self._note(LoadedBatch(transaction, batch, len(flights), asked=False))
                return
            except psycopg.OperationalError:
                # The node went away, lost its leadership during the transaction, or does not know the outcome (08007).
                if lost_at is None:
                    lost_at = time.monotonic()
                    self.report.reconnects += 1
                self.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_S)

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._dsn, autocommit=True, connect_timeout=3, application_name=APPLICATION)
        return self._connection

    def _outcome(self, connection: psycopg.Connection[Any], transaction: int) -> str:
        """Outcome of a transaction; waits while recovery has not decided."""
        deadline = time.monotonic() + GIVE_UP_S
        while True:
            row = connection.execute("SELECT pg_xact_status(%s)", (transaction,)).fetchone()
            status = str(row[0]) if row is not None else "unknown"
            if status != "in progress" or time.monotonic() > deadline:
                return status
            time.sleep(RETRY_S)

    def _number(self, connection: psycopg.Connection[Any]) -> int:
        row = connection.execute("SELECT pg_current_xact_id()").fetchone()
        assert row is not None, "a SELECT without FROM has one row"
        return int(row[0])

    def _is_loaded(self, connection: psycopg.Connection[Any], batch: int) -> bool:
        found = connection.execute("SELECT 1 FROM loads WHERE application = %s AND batch = %s", (APPLICATION, batch)).fetchone()
        return found is not None

    def _apply(self, connection: psycopg.Connection[Any], batch: int, document: str, flights: int) -> None:
        for statement in (INSERT, UPDATE_LATE, COUNT_CANCELLED, DELETE_CANCELLED):
            connection.execute(statement, (document,))
        connection.execute("INSERT INTO loads (application, batch, flights) VALUES (%s, %s, %s)", (APPLICATION, batch, flights))

    def _note(self, acknowledged: LoadedBatch) -> None:
        self.report.acknowledged.append(acknowledged)
        with self._journal.open("a", encoding="utf-8") as journal:
            journal.write(json.dumps(acknowledged.__dict__) + "\n")


def load_small_table(dsn: str, table: str, rows: Sequence[dict[str, Any]]) -> int:
    """Load a whole table, each part in one named transaction: a repeat after a broken connection returns the first run's result.

    Returns:
        The number of rows.
    """
    names = list(rows[0])
    statement = f"INSERT INTO {table} ({', '.join(names)}) SELECT {_extract(names)} FROM json_each(%s)"
    return sum(
        _run_named(dsn, f"{APPLICATION}:{table}:{start}", statement, json.dumps(rows[start : start + SMALL_PART_ROWS]))
        for start in range(0, len(rows), SMALL_PART_ROWS)
    )


def _run_named(dsn: str, request_id: str, statement: str, document: str) -> int:
    deadline = time.monotonic() + GIVE_UP_S
    while True:
        try:
            with psycopg.connect(dsn, autocommit=True, connect_timeout=3, application_name=APPLICATION) as connection:
                connection.execute(f"SET triplicate.request_id = '{request_id}'")
                return connection.execute(statement, (document,)).rowcount
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)


def create_schema(dsn: str) -> None:
    """Create the tables, in one transaction."""
    with psycopg.connect(dsn, autocommit=True, connect_timeout=3, application_name=APPLICATION) as connection, connection.transaction():
        for statement in SCHEMA:
            connection.execute(statement)
