"""The index: one row per run and one per ledger, in SQLite over the disk port. Derived data; see `docs/decisions/0003-index.md`.

All methods block and belong on a worker. A lock serializes them, since apsw refuses to share a busy connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import apsw

from triplicate.bookie.core.entry_log_format import BLOCK_HEADER_BYTES, MAX_RUN_SPAN, BlockInfo, BlockType
from triplicate.bookie.core.ledger_data import LedgerData, decode_state, encode_state
from triplicate.bookie.storage.index_vfs import COMMITS_SUFFIX, PAGE_BYTES, RESERVED_BYTES, IndexVfs
from triplicate.errors import CorruptionError
from triplicate.runtime import Disk

Row = TypeVar("Row", bound=tuple[Any, ...])

INDEX_VERSION = 2
PAGE_OF_IDS = 1000
ROWS_AT_ONCE = 64
"""A flush adds this many rows, in 0.2 ms, before it lets other threads run."""
TOMBSTONES_MAX = 100_000
"""Maximum number of deleted ledgers remembered as fenced. Beyond it, those deleted first are forgotten."""
TOMBSTONES_SLACK = 1000

_SCHEMA_OF_1 = """
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
_SCHEMA_OF_2 = """
CREATE TABLE deleted (ledger INTEGER PRIMARY KEY, state BLOB NOT NULL, flush INTEGER NOT NULL, log INTEGER NOT NULL);
CREATE INDEX deleted_by_log ON deleted (log);
CREATE TABLE missing (ledger INTEGER PRIMARY KEY, since_ms INTEGER NOT NULL);
"""


class Index:
    """See the module's text."""

    def __init__(self, disk: Disk, path: str, cache_bytes: int) -> None:
        """Open or create.

        Raises:
            CorruptionError: it cannot be read, or it is of another version.
        """
        self.path = path
        self.version = 0
        """Increases with every change, before the method that made it returns. Data read under a lower version may be outdated."""
        self._lock = threading.Lock()
        self._vfs = IndexVfs(disk)
        self._database: apsw.Connection | None = None
        try:
            with self._errors():
                database = self._database = apsw.Connection(path, vfs=self._vfs.vfs_name)
                self._prepare(database, cache_bytes)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise the error of the disk port, or CorruptionError for any other complaint of SQLite, which has no other cause."""
        try:
            yield
        except apsw.Error as error:
            failure = self._vfs.pop_failure()
            if failure is not None:
                raise failure from error
            raise CorruptionError(f"{self.path}: the index is damaged: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        with self._lock, self._errors():
            if self._database is None:
                raise OSError(f"{self.path}: the index is closed")
            try:
                with self._database:
                    yield self._database
            finally:
                # Also after a failure, whose effect is unknown.
                self.version += 1

    def _prepare(self, database: apsw.Connection, cache_bytes: int) -> None:
        database.reserve_bytes(None, RESERVED_BYTES)
        for pragma in (
            f"page_size = {PAGE_BYTES}",
            "locking_mode = EXCLUSIVE",
            "journal_mode = MEMORY",
            "synchronous = FULL",
            "temp_store = MEMORY",
            f"cache_size = -{max(64, cache_bytes // 1024)}",
        ):
            database.execute(f"PRAGMA {pragma}")
        if not self._rows("SELECT 1 FROM sqlite_schema LIMIT 1"):
            with database:
                database.execute(_SCHEMA_OF_1 + _SCHEMA_OF_2)
                database.execute("INSERT INTO facts VALUES ('version', ?), ('flush', 0), ('complete', 0)", (INDEX_VERSION,))
        version = self.fact("version")
        if version == 1:
            with database:
                database.execute(_SCHEMA_OF_2)
                database.execute("UPDATE facts SET value = ? WHERE name = 'version'", (INDEX_VERSION,))
            version = INDEX_VERSION
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
        """A number about the index itself, or None.

        ``version``; ``flush``, the newest covered; ``flush_log``, where that ends; ``complete``, 0 while a rebuild is under way.
        """
        rows = self._rows("SELECT value FROM facts WHERE name = ?", (name,))
        return int(rows[0][0]) if rows else None

    def ledger(self, ledger_id: int) -> tuple[LedgerData, int] | None:
        """State and greatest entry id (-1: none) of a ledger, or None if it is unknown here."""
        rows = self._rows(
            "SELECT state, (SELECT max(last) FROM runs WHERE runs.ledger = ledgers.ledger) FROM ledgers WHERE ledger = ?", (ledger_id,)
        )
        if not rows:
            return None
        state, last = rows[0]
        return decode_state(state), -1 if last is None else last

    def tombstone(self, ledger_id: int) -> LedgerData | None:
        """The tombstone of a ledger that was fenced and then deleted."""
        rows = self._rows("SELECT state FROM deleted WHERE ledger = ?", (ledger_id,))
        return decode_state(rows[0][0]) if rows else None

    def tombstones(self) -> int:
        """How many deleted ledgers are remembered as fenced."""
        return self.count("deleted")

    def count(self, table: str) -> int:
        """Rows of one of the tables ``ledgers``, ``runs``, ``deleted``, ``missing``, ``logs``."""
        return int(self._rows(f"SELECT count(*) FROM {table}")[0][0])

    def runs_holding(self, ledger_id: int, entry_id: int) -> list[tuple[int, BlockInfo]]:
        """(log, run) of every run whose range holds the entry, newest first."""
        rows = self._rows(
            "SELECT log, offset, flush, ledger, first, last, count, table_bytes, body_bytes FROM runs "
            "WHERE ledger = ?1 AND last BETWEEN ?2 AND ?3 AND first <= ?2",
            (ledger_id, entry_id, min(entry_id + MAX_RUN_SPAN, 2**63 - 1)),
        )
        if len(rows) > 1:
            # Rare. SQLite would set up a sort for every look-up, which costs several times the look-up itself.
            rows.sort(key=lambda row: (row[2], row[0], row[1]), reverse=True)
        return [(row[0], BlockInfo(BlockType.RUN, *row[1:])) for row in rows]

    def runs_from(self, ledger_id: int, entry_id: int, limit: int) -> tuple[list[tuple[int, BlockInfo]], int]:
        """Runs of a ledger that end at the entry or behind it, and the range for which they are complete.

        Returns:
            (log, run) by last entry, at most `limit`, and the greatest id such that no other run holds an entry from `entry_id` to it;
            less than `entry_id` if there are too many runs.
        """
        rows = self._rows(
            "SELECT log, offset, flush, ledger, first, last, count, table_bytes, body_bytes FROM runs "
            "WHERE ledger = ? AND last >= ? ORDER BY last LIMIT ?",
            (ledger_id, entry_id, limit + 1),
        )
        end = 2**63 - 1
        if len(rows) > limit:
            last = rows.pop()[5]
            behind = self._rows(
                "SELECT min(first) FROM runs WHERE ledger = ? AND last BETWEEN ? AND ?",
                (ledger_id, last, min(last + MAX_RUN_SPAN, 2**63 - 1)),
            )
            end = behind[0][0] - 1
        return [(row[0], BlockInfo(BlockType.RUN, *row[1:])) for row in rows], end

    def runs_of(self, ledger_id: int) -> list[tuple[int, BlockInfo]]:
        """(log, run) of every run of a ledger, by last entry."""
        rows = self._rows(
            "SELECT log, offset, flush, ledger, first, last, count, table_bytes, body_bytes FROM runs WHERE ledger = ? ORDER BY last",
            (ledger_id,),
        )
        return [(row[0], BlockInfo(BlockType.RUN, *row[1:])) for row in rows]

    def runs_behind(self, ledger_id: int, limit: int, after: tuple[int, BlockInfo] | None = None) -> list[tuple[int, BlockInfo]]:
        """(log, run) of a ledger's runs by last entry, flush and log, at most `limit`, those behind `after`."""
        behind = (after[1].last, after[1].flush_number, after[0], after[1].offset) if after is not None else (-1, -1, -1, -1)
        rows = self._rows(
            "SELECT log, offset, flush, ledger, first, last, count, table_bytes, body_bytes FROM runs "
            "WHERE ledger = ? AND (last, flush, log, offset) > (?, ?, ?, ?) ORDER BY last, flush, log, offset LIMIT ?",
            (ledger_id, *behind, limit),
        )
        return [(row[0], BlockInfo(BlockType.RUN, *row[1:])) for row in rows]

    def extent(self, ledger_id: int) -> tuple[int, int]:
        """Number of a ledger's runs, and the newest flush among them; (0, -1) if it has none."""
        runs, newest = self._rows("SELECT COUNT(*), IFNULL(MAX(flush), -1) FROM runs WHERE ledger = ?", (ledger_id,))[0]
        return runs, newest

    def ledger_ids(self, after: int = -1) -> list[int]:
        """The next page of ledgers with an id greater than `after`, ascending; empty at the end."""
        return [row[0] for row in self._rows("SELECT ledger FROM ledgers WHERE ledger > ? ORDER BY ledger LIMIT ?", (after, PAGE_OF_IDS))]

    def lives_in(self, log: int) -> tuple[bool, bool]:
        """Whether a log holds a run of a living ledger, and whether it holds the newest state record of any ledger, also of a deleted
        one.
        """
        rows = self._rows(
            "SELECT EXISTS (SELECT 1 FROM runs WHERE log = ?1), "
            "EXISTS (SELECT 1 FROM ledgers WHERE log = ?1) OR EXISTS (SELECT 1 FROM deleted WHERE log = ?1)",
            (log,),
        )
        return bool(rows[0][0]), bool(rows[0][1])

    def living_bytes(self, log: int) -> int:
        """Bytes of the blocks of living runs in a log. Reads a row of each."""
        rows = self._rows("SELECT sum(? + table_bytes + body_bytes) FROM runs WHERE log = ?", (BLOCK_HEADER_BYTES, log))
        return int(rows[0][0] or 0)

    def runs_in(self, log: int, limit: int, after: BlockInfo | None = None) -> list[BlockInfo]:
        """Living runs of a log, by ledger and last entry, at most `limit`, those behind `after`."""
        behind = (after.ledger_id, after.last, after.flush_number, after.offset) if after is not None else (-1, -1, -1, -1)
        rows = self._rows(
            "SELECT offset, flush, ledger, first, last, count, table_bytes, body_bytes FROM runs "
            "WHERE log = ? AND (ledger, last, flush, offset) > (?, ?, ?, ?) ORDER BY ledger, last, flush, offset LIMIT ?",
            (log, *behind, limit),
        )
        return [BlockInfo(BlockType.RUN, *row) for row in rows]

    def missing(self) -> dict[int, int]:
        """Ledgers without metadata, and the time when this was first noted, milliseconds since the epoch."""
        return dict(self._rows("SELECT ledger, since_ms FROM missing ORDER BY ledger"))

    def missing_bytes(self) -> int:
        """Bytes of the runs of such ledgers."""
        rows = self._rows("SELECT sum(? + table_bytes + body_bytes) FROM missing JOIN runs USING (ledger)", (BLOCK_HEADER_BYTES,))
        return int(rows[0][0] or 0)

    def states_in(self, log: int) -> list[tuple[int, LedgerData]]:
        """(flush, newest state record) of ledgers whose record stands in `log`, deleted ones included; at most a page, by flush."""
        rows = self._rows(
            "SELECT flush, state FROM ledgers WHERE log = ?1 UNION ALL SELECT flush, state FROM deleted WHERE log = ?1 LIMIT ?2",
            (log, PAGE_OF_IDS),
        )
        return sorted([(flush, decode_state(state)) for flush, state in rows], key=_flush_and_ledger)

    def log_sizes(self) -> dict[int, int]:
        """The durable length of each entry log when its rows were written."""
        return dict(self._rows("SELECT log, size FROM logs ORDER BY log"))

    # Writing. Each method is one transaction, durable when it returns.

    def add(
        self,
        flush_number: int,
        states: Iterable[tuple[int, LedgerData]],
        runs: Iterable[tuple[int, BlockInfo]],
        sizes: Iterable[tuple[int, int]],
        step_aside: Callable[[], None] | None = None,
    ) -> None:
        """Add the rows of one flush.

        Args:
            states: (log, state); a tombstone replaces everything else about its ledger. runs: (log, run).
            sizes: (log, bytes durable).
            step_aside: called between portions of them (`Host.step_aside`).
        """
        states = list(states)
        buried = [(state.ledger_id, encode_state(state), flush_number, log) for log, state in states if state.deleted]
        run_rows = [(b.ledger_id, b.last, b.flush_number, log, b.offset, b.first, b.count, b.table_bytes, b.body_bytes) for log, b in runs]
        state_rows = [(state.ledger_id, encode_state(state), flush_number, log) for log, state in states if not state.deleted]
        with self._transaction() as database:
            database.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _in_portions(run_rows, step_aside))
            database.executemany(
                "INSERT INTO ledgers VALUES (?, ?, ?, ?) ON CONFLICT (ledger) DO UPDATE "
                "SET state = excluded.state, flush = excluded.flush, log = excluded.log WHERE excluded.flush >= flush",
                _in_portions(state_rows, step_aside),
            )
            if buried:
                self._bury(database, buried)
            self._cover(database, flush_number, list(sizes))

    @staticmethod
    def _cover(database: apsw.Connection, flush_number: int, sizes: list[tuple[int, int]]) -> None:
        """Within a transaction: record a flush and the logs that it wrote. It ends in the last of them."""
        # Blocks written behind the flush before the index knew it are recorded already.
        database.executemany("INSERT INTO logs VALUES (?, ?) ON CONFLICT (log) DO UPDATE SET size = max(size, excluded.size)", sizes)
        if sizes:
            database.execute(
                "INSERT OR REPLACE INTO facts SELECT 'flush_log', ? WHERE ? >= (SELECT value FROM facts WHERE name = 'flush')",
                (max(sizes)[0], flush_number),
            )
        database.execute("UPDATE facts SET value = max(value, ?) WHERE name = 'flush'", (flush_number,))

    def _bury(self, database: apsw.Connection, rows: list[tuple[int, bytes, int, int]]) -> None:
        """Within a transaction: (ledger, state, flush, log) of fenced ledgers that are deleted."""
        self._forget(database, [row[:1] for row in rows])
        database.executemany("INSERT OR REPLACE INTO deleted VALUES (?, ?, ?, ?)", rows)
        count = int(str(database.execute("SELECT count(*) FROM deleted").fetchall()[0][0]))
        if count > TOMBSTONES_MAX + TOMBSTONES_SLACK:
            oldest = "SELECT ledger FROM deleted ORDER BY flush, ledger LIMIT ?"
            database.execute(f"DELETE FROM deleted WHERE ledger IN ({oldest})", (count - TOMBSTONES_MAX,))

    @staticmethod
    def _forget(database: apsw.Connection, ledgers: Sequence[tuple[int]]) -> None:
        for table in ("runs", "ledgers", "missing"):
            database.executemany(f"DELETE FROM {table} WHERE ledger = ?", ledgers)

    def set_sizes(self, sizes: Iterable[tuple[int, int]]) -> None:
        """Record the durable lengths of logs: (log, bytes)."""
        self._change("INSERT OR REPLACE INTO logs VALUES (?, ?)", list(sizes))

    def mark_complete(self) -> None:
        """Mark the index as complete: it knows everything that the entry logs hold."""
        self._change("UPDATE facts SET value = 1 WHERE name = 'complete'", [()])

    def delete_runs(self, ledger_ids: Iterable[int], up_to_flush: int) -> bool:
        """Delete some runs of ledgers that are to be deleted, if there are more than one transaction should hold.

        Returns:
            whether to call this again before `delete_ledgers`. Until then the ledgers are known, so a crash does no harm.
        """
        rows: list[tuple[int, ...]] = []
        for ledger_id in ledger_ids:
            rows += self._rows(
                "SELECT ledger, last, flush, log, offset FROM runs WHERE ledger = ? AND flush <= ? LIMIT ?",
                (ledger_id, up_to_flush, PAGE_OF_IDS + 1 - len(rows)),
            )
            if len(rows) > PAGE_OF_IDS:
                self._change("DELETE FROM runs WHERE ledger = ? AND last = ? AND flush = ? AND log = ? AND offset = ?", rows)
                return True
        return False

    def delete_ledgers(self, ledger_ids: Iterable[int], up_to_flush: int = 2**63 - 1) -> None:
        """Delete ledgers and their runs. `add` stores the tombstones of fenced ones.

        Args:
            up_to_flush: rows of later flushes stay, and so do their ledgers.
        """
        ledgers = [(ledger_id, up_to_flush) for ledger_id in ledger_ids]
        with self._transaction() as database:
            database.executemany("DELETE FROM runs WHERE ledger = ? AND flush <= ?", ledgers)
            later = "EXISTS (SELECT 1 FROM runs WHERE runs.ledger = ledgers.ledger)"
            database.executemany(f"DELETE FROM ledgers WHERE ledger = ? AND flush <= ? AND NOT {later}", ledgers)
            database.executemany("DELETE FROM missing WHERE ledger = ?", [ledger[:1] for ledger in ledgers])

    def delete_copies(self, ledger_id: int, up_to_flush: int) -> None:
        """Delete the runs of a ledger that `delete_runs` has left; its state stays. Rows of later flushes stay."""
        self._change("DELETE FROM runs WHERE ledger = ? AND flush <= ?", [(ledger_id, up_to_flush)])

    def move_runs(self, log: int, moved: Iterable[tuple[BlockInfo, int, int]], sizes: Iterable[tuple[int, int]]) -> None:
        """Record runs whose copies are durable: (run, new log, new offset). Runs deleted meanwhile stay deleted."""
        rows = [(new_log, offset, run.ledger_id, run.last, run.flush_number, log, run.offset) for run, new_log, offset in moved]
        with self._transaction() as database:
            database.executemany(
                "UPDATE runs SET log = ?, offset = ? WHERE ledger = ? AND last = ? AND flush = ? AND log = ? AND offset = ?", rows
            )
            database.executemany("INSERT OR REPLACE INTO logs VALUES (?, ?)", list(sizes))

    def forget_runs(self, log: int, runs: Iterable[BlockInfo]) -> None:
        """Forget single runs of a log."""
        rows = [(run.ledger_id, run.last, run.flush_number, log, run.offset) for run in runs]
        self._change("DELETE FROM runs WHERE ledger = ? AND last = ? AND flush = ? AND log = ? AND offset = ?", rows)

    def remove_copies(self) -> None:
        """After a rebuild: of a run that stands in two logs, because of a crash before the old one was deleted, only the later copy
        counts.
        """
        copy = "copy.ledger = runs.ledger AND copy.last = runs.last AND copy.flush = runs.flush AND copy.log > runs.log"
        same = "copy.first = runs.first AND copy.count = runs.count AND copy.body_bytes = runs.body_bytes"
        self._change(f"DELETE FROM runs WHERE EXISTS (SELECT 1 FROM runs AS copy WHERE {copy} AND {same})", [()])

    def set_flush_log(self, log: int) -> None:
        """Record where the newest flush ends, in an index from before this was stored."""
        self._change("INSERT OR REPLACE INTO facts VALUES ('flush_log', ?)", [(log,)])

    def move_states(self, log: int, moved: Iterable[tuple[int, int]], sizes: Iterable[tuple[int, int]]) -> None:
        """Record state records that were copied: (ledger, new log). Records that changed meanwhile stay unchanged."""
        rows = [(new_log, ledger_id, log) for ledger_id, new_log in moved]
        with self._transaction() as database:
            database.executemany("UPDATE ledgers SET log = ? WHERE ledger = ? AND log = ?", rows)
            database.executemany("UPDATE deleted SET log = ? WHERE ledger = ? AND log = ?", rows)
            database.executemany("INSERT OR REPLACE INTO logs VALUES (?, ?)", list(sizes))

    def note_missing(self, since_ms: int, ledger_ids: Iterable[int], found_again: Iterable[int] = ()) -> None:
        """Note ledgers without metadata since this time, and remove the notes of those found again."""
        with self._transaction() as database:
            database.executemany("INSERT OR REPLACE INTO missing VALUES (?, ?)", [(ledger_id, since_ms) for ledger_id in ledger_ids])
            database.executemany("DELETE FROM missing WHERE ledger = ?", [(ledger_id,) for ledger_id in found_again])

    def delete_logs(self, logs: Sequence[int]) -> None:
        """Forget logs that hold nothing. Call this before their files are deleted."""
        self._change("DELETE FROM logs WHERE log = ?", [(log,) for log in logs])

    def _change(self, sql: str, rows: Sequence[tuple[int, ...]]) -> None:
        with self._transaction() as database:
            database.executemany(sql, rows)


def _in_portions(rows: Sequence[Row], step_aside: Callable[[], None] | None) -> Iterator[Row]:
    """All rows, with a call of `step_aside` before each portion but the first."""
    for number, row in enumerate(rows):
        if step_aside is not None and number and not number % ROWS_AT_ONCE:
            step_aside()
        yield row


def _flush_and_ledger(found: tuple[int, LedgerData]) -> tuple[int, int]:
    return found[0], found[1].ledger_id


def delete_index(disk: Disk, path: str) -> None:
    """Delete the index's files. The entry logs and the journal hold the same information."""
    for suffix in ("", COMMITS_SUFFIX):
        disk.delete(path + suffix)
    disk.sync_directory(path.rpartition("/")[0])
