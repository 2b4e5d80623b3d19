"""Measure what the capture and encoding of row changes cost on top of plain SQLite, in processor time.

    python -m benchmarks.capture_cost [--rounds 9] [--statements 640] [--rows 10000] [--directory DIR]

The first table has one-row statements, each a transaction of its own, in groups of 1, 16 and 64 that SQLite commits together. Each column
contains the work of the column before it:

- ``sqlite``: begin, the statements, commit.
- ``hook``: and a savepoint for each statement, and a pre-update hook that does nothing.
- ``capture``: and the hook of the leader, which checks the values.
- ``collect``: and the checks at the end of a transaction, and its operations.
- ``encode``: and the record of each transaction.
- ``record``: and the header of the batch, and its position and history in the internal tables.
- ``writer``: the leader's writing connection, from the requests to the commit.
- ``follower``: alone, the application of the same entries, each in a transaction of its own.

The second table has the rows of one INSERT by `executemany`, and their way to a follower: the record decoded, and applied.

Figures are µs of processor time per statement or row, medians of the rounds; each round measures each figure once. In parentheses: the
ratio to ``sqlite``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import apsw

from triplicate.sql.core.batch_builder import BatchBuilder
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.records import BatchHeader, TableDictionary, Transaction, decode_transaction, encode_header, encode_transaction
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.executor.authorizer import Authorizer
from triplicate.sql.executor.change_capture import ChangeCapture
from triplicate.sql.executor.statement_batches import AutocommitRequest
from triplicate.sql.executor.transaction_functions import TransactionIds
from triplicate.sql.executor.writer_connection import WriterConnection
from triplicate.sql.storage.applier import Applier, LogBatch
from triplicate.sql.storage.sqlite_file import open_follower, open_store, open_writer, record_batch
from triplicate.sql.storage.sqlite_schema import check_references
from triplicate.sql.storage.transaction_history import CommitRecord

TABLE = "create table t(id integer primary key, number integer, name text, kind varchar(20), price real)"
STATEMENTS = {
    "insert": ("insert into t values(?, ?, ?, ?, ?)", 5),
    "update": ("update t set number = ?2, name = ?3 where id = ?1", 3),
    "delete": ("delete from t where id = ?1", 1),
}
"""Each kind of statement, and the number of values of a row that are its parameters."""
GROUPS = (1, 16, 64)
_DATABASE = b"d" * 16
_TIME_MS = 1_764_000_000_000

Row = tuple[Value, ...]


class Part(IntEnum):
    """A part of the work on a statement; each includes the parts before it."""

    SQLITE = 0
    HOOK = 1
    CAPTURE = 2
    COLLECT = 3
    ENCODE = 4
    RECORD = 5


BULK_PARTS = (Part.SQLITE, Part.CAPTURE, Part.COLLECT, Part.ENCODE)


class Sent(NamedTuple):
    """A record of the log and the tables in its batch's header."""

    record: bytes
    tables: tuple[TableShape, ...]


class Figure(NamedTuple):
    """One measured cost: the kind of statement, the statements of a group or rows of a run, and the column of the table."""

    case: str
    size: int
    column: str


Figures = Mapping[Figure, float]
"""Processor time of each figure, µs per statement or row."""


def rows(first: int, count: int) -> list[Row]:
    """Rows of the table, with ids from `first`."""
    return [(first + index, index * 7, f"name {index}", ("bolt", "nut", "gear")[index % 3], index * 0.25) for index in range(count)]


class PartialWriter:
    """Runs groups of statements with the parts of the leader's work up to a given one, in a file of its own."""

    def __init__(self, folder: Path, last: Part) -> None:
        path = str(folder / f"{last.name}.db")
        open_store(path, _DATABASE)
        self._last = last
        self.connection = _without_checkpoints(open_writer(path))
        self.connection.execute(TABLE)
        self._number = self._batch = 0
        self.sent = Sent(b"", ())
        if last >= Part.CAPTURE:
            self._capture = ChangeCapture(self.connection, 1 << 40)
        elif last >= Part.HOOK:
            self.connection.preupdate_hook(lambda change: None)

    def run(self, sql: str, group: Sequence[Row]) -> None:
        """Run a statement for each row in one group and commit it."""
        execute, last = self.connection.execute, self._last
        builder = BatchBuilder(self._header)
        execute("begin immediate")
        if last >= Part.CAPTURE:
            self._capture.begin()
        for row in group:
            mark = self._begin_statement(sql)
            execute(sql, row).fetchall()
            if last >= Part.CAPTURE:
                self._capture.end_statement()
            if last >= Part.COLLECT:
                self._collect(mark, builder)
            if last >= Part.HOOK:
                execute("release request")
        if last >= Part.RECORD:
            self._record(builder)
        execute("commit")

    def run_bulk(self, sql: str, group: Sequence[Row]) -> None:
        """Run a statement for all rows as one transaction, which is rolled back."""
        last = self._last
        self.connection.execute("begin immediate")
        if last >= Part.CAPTURE:
            self._capture.begin()
            self._capture.prepare(sql)
        self.connection.executemany(sql, group)
        if last >= Part.CAPTURE:
            self._capture.end_statement()
        if last >= Part.COLLECT:
            operations = self._capture.operations()
        if last >= Part.ENCODE:
            dictionary = TableDictionary()
            record = encode_transaction(Transaction(1, operations), dictionary)
            self.sent = Sent(record, tuple(dictionary.shapes))
        self.connection.execute("rollback")

    def _begin_statement(self, sql: str) -> int:
        if self._last >= Part.CAPTURE:
            self._capture.prepare(sql)
        if self._last >= Part.HOOK:
            self.connection.execute("savepoint request")
        if self._last >= Part.CAPTURE:
            self._capture.begin_next()
            return self._capture.mark()
        return 0

    def _collect(self, mark: int, builder: BatchBuilder) -> None:
        check_references(self.connection)
        self._capture.flush_virtual_tables()
        self._capture.end_transaction(mark, {})
        operations = self._capture.operations(mark)
        if self._last >= Part.ENCODE:
            self._number += 1
            builder.add(Transaction(self._number, operations))

    def _record(self, builder: BatchBuilder) -> None:
        builder.preamble()
        self._batch += 1
        end = self._number
        start = end - len(builder.records)
        record_batch(self.connection, CommitRecord(1, self._batch, start, end, 1, builder.numbers, (), _TIME_MS))

    def _header(self, tables: tuple[TableShape, ...]) -> BatchHeader:
        return BatchHeader(_DATABASE, 1, self._batch, 1, 1, bytes(16), bytes(16), tables, _TIME_MS)


class WholeWriter:
    """Runs groups of statements as the leader does, in a file of its own."""

    def __init__(self, folder: Path) -> None:
        path = str(folder / "writer.db")
        open_store(path, _DATABASE)
        examined = open_writer(path)
        examined.execute(TABLE)
        gate = Authorizer(examined)
        self._prepared = {sql: gate.examine(sql) for sql, _ in STATEMENTS.values()}
        self._writer = WriterConnection(path, TransactionIds(1), wall_us=lambda: _TIME_MS * 1000)
        self.connection = _without_checkpoints(examined)
        self.entries: list[LogBatch] = []
        """The entries of the log that no follower has applied."""

    def run(self, sql: str, group: Sequence[Row]) -> None:
        prepared = self._prepared[sql]
        pending = self._writer.run_batch([AutocommitRequest(prepared, row) for row in group])
        assert all(answer.outcome is not None for answer in pending.answers), pending.answers
        start = self._writer.position
        self._writer.commit(pending, start + len(pending.records))
        self.entries.append(LogBatch(start, pending.records, pending.preamble, 1))

    def close(self) -> None:
        self._writer.close()
        self.connection.close()


class Follower:
    """Applies entries of the log, in a file of its own."""

    def __init__(self, folder: Path) -> None:
        path = str(folder / "follower.db")
        open_store(path, _DATABASE)
        self.connection = _without_checkpoints(open_follower(path))
        self.connection.execute(TABLE)
        self._applier = Applier(self.connection)

    def apply(self, entries: Sequence[LogBatch]) -> None:
        """Apply each entry in a transaction of its own."""
        for entry in entries:
            self._applier.begin()
            self._applier.apply(entry)
            self._applier.commit()

    def try_out(self, sent: Sent) -> None:
        """Apply one record and undo it."""
        header = BatchHeader(_DATABASE, 1, 1, 0, 0, bytes(16), bytes(16), sent.tables, _TIME_MS)
        self._applier.begin()
        self._applier.apply(LogBatch(0, [sent.record], encode_header(header), 1))
        self._applier.rollback()


def _without_checkpoints(connection: apsw.Connection) -> apsw.Connection:
    connection.execute("pragma wal_autocheckpoint = 0")
    return connection


class Samples:
    """Processor times of each figure."""

    def __init__(self) -> None:
        self._found: dict[Figure, list[float]] = {}

    def add(self, figure: Figure, units: int, function: Callable[[], object]) -> None:
        """Call a function and count its processor time, per unit, for a figure."""
        before = time.process_time()
        function()
        self._found.setdefault(figure, []).append((time.process_time() - before) / units * 1e6)

    def medians(self) -> Figures:
        return {figure: statistics.median(samples) for figure, samples in self._found.items()}


def measure_statements(folder: Path, rounds: int, statements: int) -> Figures:
    """The figures of the first table."""
    writers: dict[str, PartialWriter | WholeWriter] = {part.name.lower(): PartialWriter(folder, part) for part in Part}
    writers["writer"] = whole = WholeWriter(folder)
    follower = Follower(folder)
    samples = Samples()
    first = 0
    for _ in range(rounds):
        for size in GROUPS:
            chosen = rows(first, statements)
            for column, writer in writers.items():
                writer.connection.execute("pragma wal_checkpoint(restart)").fetchall()
                for case, (sql, values) in STATEMENTS.items():
                    given = [row[:values] for row in chosen]
                    groups = [given[start : start + size] for start in range(0, statements, size)]
                    samples.add(Figure(case, size, column), statements, lambda: _run_all(writer, sql, groups))  # noqa: B023  called at once
                    if writer is whole:
                        samples.add(Figure(case, size, "follower"), statements, lambda: follower.apply(whole.entries))
                        whole.entries.clear()
            follower.connection.execute("pragma wal_checkpoint(restart)").fetchall()
            first += statements
    whole.close()
    return samples.medians()


def _run_all(writer: PartialWriter | WholeWriter, sql: str, groups: Sequence[Sequence[Row]]) -> None:
    for group in groups:
        writer.run(sql, group)


def measure_rows(folder: Path, rounds: int, count: int) -> Figures:
    """The figures of the second table."""
    (sql, _), group = STATEMENTS["insert"], rows(0, count)
    writers = {part: PartialWriter(folder, part) for part in BULK_PARTS}
    follower = Follower(folder)
    samples = Samples()
    for _ in range(rounds):
        for part, writer in writers.items():
            samples.add(Figure("rows", count, part.name.lower()), count, lambda: writer.run_bulk(sql, group))  # noqa: B023  called at once
        sent = writers[Part.ENCODE].sent
        samples.add(Figure("rows", count, "decode"), count, lambda: decode_transaction(sent.record, sent.tables))  # noqa: B023
        samples.add(Figure("rows", count, "apply"), count, lambda: follower.try_out(sent))  # noqa: B023
    return samples.medians()


def table(figures: Figures) -> str:
    """The figures as lines of text, one for each case and size."""
    columns = list(dict.fromkeys(figure.column for figure in figures))
    cases = list(dict.fromkeys((figure.case, figure.size) for figure in figures))
    lines = ["case      size " + "".join(f"{column:>16}" for column in columns)]
    for case, size in cases:
        plain = figures[Figure(case, size, "sqlite")]
        cells = [figures[Figure(case, size, column)] for column in columns]
        lines.append(f"{case:8}{size:6} " + "".join(f"{cell:9.2f} ({cell / plain:4.2f})" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--statements", type=int, default=640, help="statements of each figure; a multiple of 64")
    parser.add_argument("--rows", type=int, default=10_000, help="rows of the bulk statement")
    parser.add_argument("--directory", help="where the files are made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        print(table(measure_statements(Path(folder), options.rounds, options.statements)))
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        print(table(measure_rows(Path(folder), options.rounds, options.rows)))


if __name__ == "__main__":
    main()
