"""The index: one row per run and one per ledger, in SQLite over the disk port. Derived data; see `docs/decisions/0003-index.md`.

All methods block and belong on a worker. A lock of our own makes them take turns, since apsw refuses to share a connection that is busy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from triplicate.bookie.core.entry_log import MAX_RUN_SPAN, BlockInfo, BlockType
from triplicate.bookie.core.state import LedgerState, decode_state, encode_state
from triplicate.bookie.index_file import COMMITS_SUFFIX, PAGE_BYTES, RESERVED_BYTES, IndexVfs
from triplicate.errors import CorruptionError
from triplicate.runtime import Disk

INDEX_VERSION = 1
PAGE_OF_IDS = 1000

_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE ledgers (ledger INTEGER PRIMARY KEY, state BLOB NOT NULL, flush INTEGER NOT NULL, log INTEGER NOT NULL);
CREATE TABLE runs (
    ledger INTEGER NOT NULL, last INTEGER NOT NULL, flush INTEGER NOT NULL, log INTEGER NOT NULL, offset INTEGER NOT NULL,
    first INTEGER NOT NULL, count INTEGER NOT NULL, table_bytes INTEGER NOT NULL, body_bytes INTEGER NOT NULL,
    PRIMARY KEY (ledger, last, flush, log, offset)) WITHOUT ROWID;
CREATE INDEX runs_by_log ON runs (log);
CREATE INDEX ledgers_by_log ON ledgers (log);
CREATE TABLE logs (log INTEGER PRIMARY KEY, size INTEGER NOT NULL);
"""


class Index:
    """Open it with `open_index`, which says when it must be rebuilt."""

    def __init__(self, disk: Disk, path: str, cache_bytes: int) -> None:
        """Open or create.

        Raises:
            CorruptionError: it cannot be read, or it is of another version.
        """
        self.path = path
        self._lock = threading.Lock()
        self._vfs = IndexVfs(disk)
        self._database: apsw.Connection | None = None
        try:
            with self._errors():
                self._database = apsw.Connection(path, vfs=self._vfs.vfs_name)
                self._prepare(cache_bytes)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise what the disk port raised, and CorruptionError for whatever else SQLite complains about: it has no other cause."""
        try:
            yield
        except apsw.Error as error:
            failure = self._vfs.take_failure()
            if failure is not None:
                raise failure from error
            raise CorruptionError(f"{self.path}: the index is damaged: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        with self._lock, self._errors():
            if self._database is None:
                raise OSError(f"{self.path}: the index is closed")
            with self._database:
                yield self._database

    def _prepare(self, cache_bytes: int) -> None:
        assert self._database is not None
        self._database.reserve_bytes(None, RESERVED_BYTES)
        for pragma in (
            f"page_size = {PAGE_BYTES}",
            "locking_mode = EXCLUSIVE",
            "journal_mode = MEMORY",
            "synchronous = FULL",
            "temp_store = MEMORY",
            f"cache_size = -{max(64, cache_bytes // 1024)}",
        ):
            self._database.execute(f"PRAGMA {pragma}")
        if not self._rows("SELECT 1 FROM sqlite_schema LIMIT 1"):
            with self._database:
                self._database.execute(_SCHEMA)
                self._database.execute("INSERT INTO facts VALUES ('version', ?), ('flush', 0), ('complete', 0)", (INDEX_VERSION,))
        version = self.fact("version")
        if version != INDEX_VERSION:
            raise CorruptionError(f"{self.path}: an index of version {version}, this release uses {INDEX_VERSION}")

    def close(self) -> None:
        """Idempotent."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None
                self._vfs.unregister()

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._lock, self._errors():
            if self._database is None:
                raise OSError(f"{self.path}: the index is closed")
            return self._database.execute(sql, parameters).fetchall()

    # Reading.

    def fact(self, name: str) -> int | None:
        """A number about the index itself: ``version``, ``flush`` (newest covered), ``complete`` (0 while a rebuild is under way)."""
        rows = self._rows("SELECT value FROM facts WHERE name = ?", (name,))
        return int(rows[0][0]) if rows else None

    def ledger(self, ledger_id: int) -> tuple[LedgerState, int] | None:
        """State and greatest entry id (-1: none) of a ledger, or None when it is unknown here."""
        rows = self._rows(
            "SELECT state, (SELECT max(last) FROM runs WHERE runs.ledger = ledgers.ledger) FROM ledgers WHERE ledger = ?", (ledger_id,)
        )
        if not rows:
            return None
        state, last = rows[0]
        return decode_state(state), -1 if last is None else last

    def runs_holding(self, ledger_id: int, entry_id: int) -> list[tuple[int, BlockInfo]]:
        """(log, run) of every run whose range holds the entry, newest first."""
        rows = self._rows(
            "SELECT log, offset, flush, ledger, first, last, count, table_bytes, body_bytes FROM runs "
            "WHERE ledger = ?1 AND last BETWEEN ?2 AND ?3 AND first <= ?2",
            (ledger_id, entry_id, min(entry_id + MAX_RUN_SPAN, 2**63 - 1)),
        )
        if len(rows) > 1:
            # Hardly ever: SQLite would set up a sort for every look-up, which costs it several times the look-up itself.
            rows.sort(key=lambda row: (row[2], row[0], row[1]), reverse=True)
        return [(row[0], BlockInfo(BlockType.RUN, *row[1:])) for row in rows]

    def runs_of(self, ledger_id: int) -> list[tuple[int, BlockInfo]]:
        """(log, run) of every run of a ledger, by last entry."""
        rows = self._rows(
            "SELECT log, offset, flush, ledger, first, last, count, table_bytes, body_bytes FROM runs WHERE ledger = ? ORDER BY last",
            (ledger_id,),
        )
        return [(row[0], BlockInfo(BlockType.RUN, *row[1:])) for row in rows]

    def ledger_ids(self, after: int = -1) -> list[int]:
        """The next page of ledgers with an id greater than `after`, ascending; empty at the end."""
        return [row[0] for row in self._rows("SELECT ledger FROM ledgers WHERE ledger > ? ORDER BY ledger LIMIT ?", (after, PAGE_OF_IDS))]

    def logs_with_runs(self) -> list[int]:
        """Logs that hold a run of a living ledger, ascending."""
        return [row[0] for row in self._rows("SELECT DISTINCT log FROM runs ORDER BY log")]

    def ledgers_with_state_in(self, log: int) -> list[int]:
        """Ledgers whose newest state record stands in `log`."""
        return [row[0] for row in self._rows("SELECT ledger FROM ledgers WHERE log = ? ORDER BY ledger", (log,))]

    def log_sizes(self) -> dict[int, int]:
        """How far each entry log was durable when its rows were written."""
        return dict(self._rows("SELECT log, size FROM logs ORDER BY log"))

    # Writing. Each method is one transaction, durable when it returns.

    def add(
        self,
        flush_number: int,
        states: Iterable[tuple[int, LedgerState]],
        runs: Iterable[tuple[int, BlockInfo]],
        sizes: Iterable[tuple[int, int]],
    ) -> None:
        """Rows of one flush.

        Args:
            states: (log, state). runs: (log, run). sizes: (log, bytes durable).
        """
        run_rows = [(b.ledger_id, b.last, b.flush_number, log, b.offset, b.first, b.count, b.table_bytes, b.body_bytes) for log, b in runs]
        state_rows = [(state.ledger_id, encode_state(state), flush_number, log) for log, state in states]
        with self._transaction() as database:
            database.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", run_rows)
            database.executemany(
                "INSERT INTO ledgers VALUES (?, ?, ?, ?) ON CONFLICT (ledger) DO UPDATE "
                "SET state = excluded.state, flush = excluded.flush, log = excluded.log WHERE excluded.flush >= flush",
                state_rows,
            )
            database.executemany("INSERT OR REPLACE INTO logs VALUES (?, ?)", list(sizes))
            database.execute("UPDATE facts SET value = max(value, ?) WHERE name = 'flush'", (flush_number,))

    def mark_complete(self) -> None:
        """The index now tells everything that the entry logs hold."""
        self._change("UPDATE facts SET value = 1 WHERE name = 'complete'", [()])

    def delete_ledgers(self, ledger_ids: Sequence[int]) -> None:
        """Forget ledgers and their runs."""
        with self._transaction() as database:
            rows = [(ledger_id,) for ledger_id in ledger_ids]
            database.executemany("DELETE FROM runs WHERE ledger = ?", rows)
            database.executemany("DELETE FROM ledgers WHERE ledger = ?", rows)

    def delete_logs(self, logs: Sequence[int]) -> None:
        """Forget logs that hold nothing; call before their files are deleted."""
        self._change("DELETE FROM logs WHERE log = ?", [(log,) for log in logs])

    def _change(self, sql: str, rows: Sequence[tuple[int, ...]]) -> None:
        with self._transaction() as database:
            database.executemany(sql, rows)


def delete_index(disk: Disk, path: str) -> None:
    """Remove the index's files. What they said stands in the entry logs and the journal."""
    for suffix in ("", COMMITS_SUFFIX):
        disk.delete(path + suffix)
    disk.sync_directory(path.rpartition("/")[0])
