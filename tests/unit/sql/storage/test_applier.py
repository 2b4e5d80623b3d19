"""Row operations of several transactions and batches, executed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import apsw
import pytest

from triplicate.errors import Diverged
from triplicate.sql.core.records import (
    BatchHeader,
    Operation,
    RowKind,
    RowRun,
    SchemaChange,
    SettingChange,
    TableDictionary,
    Transaction,
    TransactionPart,
    decode_header,
    encode_header,
    encode_operations,
    encode_record,
    encode_transaction,
)
from triplicate.sql.storage.applier import Applier, LogBatch, follow
from triplicate.sql.storage.sqlite_file import open_follower, open_store
from triplicate.sql.storage.sqlite_schema import load_tables, schema_digest

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

    def parts(self, *operations: Sequence[Operation], number: int = 7) -> list[LogBatch]:
        """The next batches of the log: a transaction in parts."""
        made = []
        for index, one in enumerate(operations):
            dictionary = TableDictionary()
            part = TransactionPart(index + 1, len(operations), index)
            record = encode_record(Transaction(number, [], part=part), [encode_operations(one, dictionary)])
            header = BatchHeader(DATABASE, 1, self.offset + 1, 0, 0, bytes(16), bytes(16), tuple(dictionary.shapes))
            made.append(LogBatch(self.offset, [record], encode_header(header), 1))
            self.offset += 1
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


def seen(tmp_path: Path) -> list[tuple[object, ...]]:
    """The rows as another connection sees them."""
    connection = open_follower(str(tmp_path / "copy.db"))
    try:
        return connection.execute("select * from t order by id").fetchall()
    finally:
        connection.close(True)


def test_a_transaction_in_parts_is_seen_with_its_last_part(copy: Copy, tmp_path: Path) -> None:
    before = copy.batch(copy.insert(1, "a"))
    parts = copy.parts(copy.insert(2, "b"), copy.update(1, "c"), copy.delete(2))
    follow(copy.applier, [before, parts[0]])
    assert (copy.applier.position, seen(tmp_path)) == (1, [(1, "a")])
    follow(copy.applier, [parts[1]])
    assert (copy.applier.position, seen(tmp_path)) == (1, [(1, "a")])
    follow(copy.applier, [parts[2], copy.batch(copy.insert(3))])
    assert (copy.applier.position, seen(tmp_path)) == (5, [(1, "c"), (3, None)])


def test_a_copy_that_is_interrupted_between_parts_begins_again_with_the_first(copy: Copy, tmp_path: Path) -> None:
    follow(copy.applier, [copy.batch(copy.insert(1, "a"))])
    parts = copy.parts(copy.insert(2, "b"), copy.insert(3, "c"))
    follow(copy.applier, parts[:1])
    follow(copy.applier, parts[:1])  # The log is read again from the position.
    copy.applier.rollback()  # And now the applier is another one.
    assert (copy.applier.position, seen(tmp_path)) == (1, [(1, "a")])
    follow(copy.applier, parts)
    follow(copy.applier, parts)
    assert (copy.applier.position, seen(tmp_path)) == (3, [(1, "a"), (2, "b"), (3, "c")])


def test_parts_that_do_not_follow_each_other_are_not_applied(copy: Copy, tmp_path: Path) -> None:
    parts = copy.parts(copy.insert(1), copy.insert(2), copy.insert(3))
    other = copy.parts(copy.insert(4), copy.insert(5), number=8)
    for wrong in (
        [parts[1]],
        [parts[0], replace(parts[2], first_offset=1)],
        [parts[0], replace(other[1], first_offset=1)],
        [parts[0], replace(copy.batch(copy.insert(6)), first_offset=1)],
    ):
        first = replace(wrong[0], first_offset=0)
        with pytest.raises(Diverged):
            follow(copy.applier, [first, *wrong[1:]])
        assert (copy.applier.position, seen(tmp_path)) == (0, [])
    follow(copy.applier, parts)
    assert copy.applier.position == 3


def test_the_schema_of_a_copy_is_that_of_its_complete_transactions(copy: Copy) -> None:
    digest = schema_digest_after(copy, "create table u(a)")
    parts = copy.parts([], copy.insert(1))
    header = replace(decode_header(parts[0].preamble or b""), schema_version_after=1, digest_after=digest)
    dictionary = TableDictionary()
    record = encode_record(
        Transaction(7, [], part=TransactionPart(1, 2, 0)), [encode_operations([SchemaChange("create table u(a)", digest)], dictionary)]
    )
    last = replace(decode_header(parts[1].preamble or b""), schema_version_before=1, schema_version_after=1, digest_before=digest)
    first = replace(parts[0], records=[record], preamble=encode_header(header))
    follow(copy.applier, [first])
    assert copy.applier.schema_version == 0
    follow(copy.applier, [replace(parts[1], preamble=encode_header(replace(last, digest_after=digest)))])
    assert copy.applier.schema_version == 1


def schema_digest_after(copy: Copy, sql: str) -> bytes:
    copy.connection.execute("begin")
    copy.connection.execute(sql)
    try:
        return schema_digest(copy.connection)
    finally:
        copy.connection.execute("rollback")
