"""Clients of a database that write and read continuously, in threads, and record the answers."""

from __future__ import annotations

import threading
import time
from types import TracebackType

import psycopg

PAUSE_S = 0.05
CONNECT_TIMEOUT_S = 5


class Traffic:
    """One writer and one reader of a table ``t(id)``, from entering to leaving. Both connect again after every error.

    Args:
        dsn: names every node of the database.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write, name="writer"), threading.Thread(target=self._read, name="reader")]
        self.acknowledged: dict[int, float] = {}
        """Ids that were acknowledged, and when (`time.monotonic`)."""
        self.unknown: set[int] = set()
        """Ids of inserts with an unknown outcome."""
        self.reads: list[float] = []
        """When reads were answered."""
        self.errors: list[str] = []

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def written_between(self, begin_s: float, end_s: float) -> int:
        return sum(begin_s <= when <= end_s for when in list(self.acknowledged.values()))

    def read_between(self, begin_s: float, end_s: float) -> int:
        return sum(begin_s <= when <= end_s for when in list(self.reads))

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(f"{self._dsn} connect_timeout={CONNECT_TIMEOUT_S}", autocommit=True)

    def _write(self) -> None:
        number = 0
        while not self._over.is_set():
            try:
                with self._connect() as connection:
                    while not self._over.is_set():
                        number += 1
                        self.unknown.add(number)
                        connection.execute("insert into t(id) values(%s)", (number,))
                        self.acknowledged[number] = time.monotonic()
                        self.unknown.discard(number)
                        time.sleep(PAUSE_S)
            except psycopg.Error as error:
                self.errors.append(repr(error))
                time.sleep(PAUSE_S)

    def _read(self) -> None:
        while not self._over.is_set():
            try:
                with self._connect() as connection:
                    while not self._over.is_set():
                        known = len(self.acknowledged)
                        row = connection.execute("select count(*) from t").fetchone()
                        assert row is not None
                        count = row[0]
                        assert isinstance(count, int)
                        assert count >= known, f"the leader shows {count} rows, {known} were acknowledged"
                        self.reads.append(time.monotonic())
                        time.sleep(PAUSE_S)
            except psycopg.Error as error:
                self.errors.append(repr(error))
                time.sleep(PAUSE_S)
