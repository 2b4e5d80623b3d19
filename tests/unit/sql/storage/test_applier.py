"""Row operations of several transactions and batches, executed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import pytest

from triplicate.errors import Diverged
from triplicate.sql.core.records import (
    BatchHeader,
    Operation,
    RowKind,
    RowRun,
    SettingChange,
    TableDictionary,
    Transaction,
    encode_header,
    encode_transaction,
)
from triplicate.sql.storage.applier import Applier, LogBatch, follow
from triplicate.sql.storage.sqlite_file import open_follower, open_store
from triplicate.sql.storage.sqlite_schema import load_tables

DATABASE = b"d" * 16


@dataclass
class Copy:
    """A follower's copy with the table ``t(id integer primary key, a)``, and the batches of its log."""

    connection: apsw.Connection
    applier: Applier
    offset: int = 0
    executed: list[str] = field(default_factory=list)
    """Statements that SQLite has run, those of `executemany` once for each row."""

    def batch(self, *transactions: Sequence[Operation]) -> LogBatch:
        """The next batch of the log."""
        dictionary = TableDictionary()
        records = [encode_transaction(Transaction(self.offset + n + 1, list(one)), dictionary) for n, one in enumerate(transactions)]
        header = BatchHeader(DATABASE, 1, self.offset + 1, 0, 0, bytes(16), bytes(16), tuple(dictionary.shapes))
        made = LogBatch(self.offset, records, encode_header(header), 1)
        self.offset += len(records)
        return made

    def change(self, kind: RowKind, rowid: int, value: object = None) -> list[Operation]:
        """A transaction of one row."""
        shape = load_tables(self.connection)["t"].shape
        columns = None if kind is RowKind.DELETE else [[rowid], [value]]
        return [RowRun(shape, kind, 1, rowids=[rowid], new=columns)]  # type: ignore[arg-type]

    def insert(self, rowid: int, value: object = None) -> list[Operation]:
        return self.change(RowKind.INSERT, rowid, value)

    def update(self, rowid: int, value: object = None) -> list[Operation]:
        return self.change(RowKind.UPDATE, rowid, value)

    def delete(self, rowid: int) -> list[Operation]:
        return self.change(RowKind.DELETE, rowid)

    def rows(self) -> list[tuple[object, ...]]:
        return self.connection.execute("select * from t order by id").fetchall()


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    path = str(tmp_path / "copy.db")
    open_store(path, DATABASE)
    connection = open_follower(path)
    connection.execute("create table t(id integer primary key, a)")
    made = Copy(connection, Applier(connection))

    def note(_cursor: apsw.Cursor, sql: str, _parameters: object) -> bool:
        made.executed.append(sql)
        return True

    connection.set_exec_trace(note)
    yield made
    connection.close(True)


def test_operations_are_applied_in_the_order_of_the_log(copy: Copy) -> None:
    batches = [
        copy.batch(copy.insert(1, "a"), copy.insert(2, "a"), copy.update(1, "b")),
        copy.batch(copy.update(1, "c"), copy.delete(2), copy.insert(2, "d")),
        copy.batch(copy.insert(3, "e"), copy.delete(1), copy.insert(1, "f")),
    ]
    assert follow(copy.applier, batches) == 9
    assert copy.rows() == [(1, "f"), (2, "d"), (3, "e")]


def test_the_later_of_two_updates_of_a_row_wins(copy: Copy) -> None:
    follow(copy.applier, [copy.batch(copy.insert(1)), copy.batch(copy.update(1, "a")), copy.batch(copy.update(1, "b"))])
    assert copy.rows() == [(1, "b")]


def test_all_batches_of_an_application_are_one_sqlite_transaction(copy: Copy) -> None:
    follow(copy.applier, [copy.batch(copy.insert(n, n)) for n in range(1, 11)])
    assert [sql for sql in copy.executed if sql.startswith(("begin", "commit"))] == ["begin immediate", "commit"]
    assert copy.rows() == [(n, n) for n in range(1, 11)]


def test_rows_before_a_setting_are_applied_before_it(copy: Copy) -> None:
    copy.connection.execute("create table counted(id integer primary key autoincrement)")
    shape = load_tables(copy.connection)["counted"].shape
    rows = [RowRun(shape, RowKind.INSERT, 1, rowids=[7], new=[[7]])]
    follow(copy.applier, [copy.batch(rows), copy.batch([SettingChange("sequence:counted", 5)])])
    assert copy.connection.execute("select seq from sqlite_sequence").fetchall() == [(5,)]


@pytest.mark.parametrize(
    ("kind", "rowids", "words"),
    [
        (RowKind.UPDATE, (1, 9, 2), "update of 3 rows of table 't' changed 2 rows"),
        (RowKind.DELETE, (1, 9), "delete of 2 rows of table 't' changed 1 rows"),
        (RowKind.INSERT, (3, 2, 4), "offset 2: ConstraintError"),
    ],
    ids=["update", "delete", "insert"],
)
@pytest.mark.parametrize("is_last", [False, True], ids=["amid others", "last"])
def test_a_row_that_is_missing_or_there_already_is_found_and_nothing_is_applied(
    copy: Copy, kind: RowKind, rowids: Sequence[int], words: str, is_last: bool
) -> None:
    follow(copy.applier, [copy.batch(copy.insert(1), copy.insert(2))])
    batches = [copy.batch(copy.change(kind, rowid, "b")) for rowid in rowids]
    if not is_last:
        batches.append(copy.batch(copy.insert(5), copy.update(5, "c")))
    with pytest.raises(Diverged, match=words):
        follow(copy.applier, batches)
    assert copy.rows() == [(1, None), (2, None)]
    assert copy.applier.position == 2
    assert follow(copy.applier, [LogBatch(2, batches[0].records, batches[0].preamble, 1)]) == 3
