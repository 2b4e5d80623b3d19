"""Transactions that are larger than an entry of the log: spooled while they run, written in parts, bounded by a setting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.property.rowlog_workload import Pair, contents
from triplicate.errors import SqlError
from triplicate.sql.core import batch_builder
from triplicate.sql.core.records import decode_header, decode_transaction
from triplicate.sql.executor import change_capture, spooled_changes, staged_parts
from triplicate.sql.executor.change_capture import ChangeCapture
from triplicate.sql.executor.interrupts import TransactionLost
from triplicate.sql.executor.spooled_changes import SpooledChanges
from triplicate.sql.executor.statement_batches import AutocommitRequest

KIB = 1024
PIECE, PART, ENTRY = 32 * KIB, 64 * KIB, 128 * KIB
"""A thirty-second of what they are."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_capture, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(staged_parts, "PART_BYTES", PART)
    monkeypatch.setattr(batch_builder, "MAX_ENTRY_BYTES", batch_builder.ENTRY_MARGIN_BYTES + ENTRY)
    monkeypatch.setattr(spooled_changes, "MAX_TRANSACTION_BYTES", ENTRY)


def rows(count: int, size: int = 200, start: int = 1) -> str:
    """A query of rows: a number, and a text of `size` characters."""
    counted = f"with recursive c(i) as (select {start} union all select i + 1 from c limit {count})"
    return f"{counted} select i, printf('%0{size}d', i) from c"


def insert(pair: Pair, query: str, table: str = "t") -> None:
    pair.writer.run(pair.gate.examine(f"insert into {table} {query}"), ())


def scene(folder: Path, play: Callable[[Pair], None], max_bytes: int = 2048 * KIB) -> None:
    pair = Pair(folder, max_bytes=max_bytes)
    try:
        pair.script("create table t(id integer primary key, s text)")
        pair.script("create table counted(id integer primary key autoincrement)")
        play(pair)
    finally:
        pair.close()
    leader, follower = map(contents, pair.paths)
    assert leader == follower


def count(pair: Pair, table: str = "t") -> int:
    ((found,),) = pair.reader.execute(f"select count(*) from {table}")
    assert isinstance(found, int)
    return found


def test_the_memory_holds_a_piece_of_the_changes_and_the_log_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0
    add = ChangeCapture._add

    def watched(self: ChangeCapture, *arguments: object) -> int:
        nonlocal most
        most = max(most, len(self.events))
        return add(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ChangeCapture, "_add", watched)

    def play(pair: Pair) -> None:
        pair.writer.begin()
        insert(pair, rows(1_900))
        pending = pair.writer.finish([], "")
        assert pending.parts is not None
        assert pending.changed_tables() == ["t"]
        parts = [pending.parts.read(index) for index in range(pending.count)]
        assert all(len(records) == 1 and len(records[0]) < ENTRY for _, records in parts)
        headers = [decode_header(preamble) for preamble, _ in parts]
        assert [header.batch for header in headers] == list(range(headers[0].batch, headers[0].batch + len(parts)))
        assert len({header.time_ms for header in headers}) == 1
        places = [decode_transaction(records[0], header.tables).part for header, (_, records) in zip(headers, parts, strict=True)]
        assert [(place.number, place.of) for place in places] == [(number, len(parts)) for number in range(1, len(parts) + 1)]
        assert places[0].changes_before == 0
        assert 0 < places[1].changes_before < places[-1].changes_before < 1_900
        pair.send(pending)
        assert (count(pair), pair.parts) == (1_900, len(parts))

    scene(tmp_path, play)
    assert most * 200 < 2 * PIECE


def test_a_transaction_that_fits_an_entry_has_one_record_whatever_was_spooled(tmp_path: Path) -> None:
    def play(pair: Pair) -> None:
        pair.writer.begin()
        insert(pair, rows(280))
        assert pair.writer._capture.spooled.pieces
        pending = pair.writer.finish([], "")
        assert (pending.parts, pending.count) == (None, 1)
        pair.send(pending)
        assert count(pair) == 280

    scene(tmp_path, play)


def test_savepoints_and_failed_statements_drop_what_is_spooled_since(tmp_path: Path) -> None:
    def play(pair: Pair) -> None:
        writer = pair.writer
        writer.begin()
        insert(pair, rows(622))
        insert(pair, rows(3, start=623))
        writer.savepoint("a")
        insert(pair, rows(3, start=90_001))  # It is in memory until the next statement.
        insert(pair, rows(625, start=626))
        writer.savepoint("b")
        insert(pair, rows(312, start=1_251))
        with pytest.raises(SqlError, match="UNIQUE"):
            insert(pair, rows(625, start=1_561))  # It fails at its third row, and
        with pytest.raises(SqlError, match="UNIQUE"):
            insert(pair, f"select i + 1562, hex(zeroblob(100)) from ({rows(900)}) union all select 1, 'x'")  # at its last one.
        writer.rollback_to("b")
        writer.rollback_to("a")
        insert(pair, rows(500, start=3_001))
        pair.send(writer.finish([], ""))
        assert count(pair) == 1_125

    scene(tmp_path, play)


def test_a_transaction_that_is_rolled_back_leaves_nothing_for_the_next(tmp_path: Path) -> None:
    def play(pair: Pair) -> None:
        pair.writer.begin()
        insert(pair, rows(1_250))
        pair.writer.rollback()
        assert not pair.writer._capture.spooled.size_bytes
        pair.writer.begin()
        insert(pair, rows(3))
        pending = pair.writer.finish([], "")
        assert len(pending.records[0]) < 1000
        pair.send(pending)
        assert (count(pair), pair.parts) == (3, 0)

    scene(tmp_path, play)


def test_a_large_statement_runs_alone_in_its_batch(tmp_path: Path) -> None:
    def play(pair: Pair) -> None:
        first, last = (pair.gate.examine(f"insert into t values({number}, 'kept')") for number in (-1, -2))
        large = pair.gate.examine(f"insert into t {rows(1_250)}")
        requests = [AutocommitRequest(first, ()), AutocommitRequest(large, (), "once"), AutocommitRequest(last, ())]
        pending = pair.writer.run_batch(requests)
        assert [answer.runs_again for answer in pending.answers] == [False, True, False]
        pair.send(pending)
        assert count(pair) == 2
        pending = pair.writer.run_batch([requests[1], AutocommitRequest(pair.gate.examine("insert into t values(-3, 'x')"), ())])
        assert [answer.runs_again for answer in pending.answers] == [False, True]
        assert pending.parts is not None
        pair.send(pending)
        assert count(pair) == 1_252
        again = pair.writer.run_batch([requests[1]])
        assert again.answers[0].outcome is not None
        assert (again.answers[0].outcome.rows_affected, again.count) == (1_250, 0)
        pair.send(again)

    scene(tmp_path, play)


def test_counters_and_schema_changes_are_those_of_the_whole_transaction(tmp_path: Path) -> None:
    def play(pair: Pair) -> None:
        writer = pair.writer
        pair.script("create table n(id integer primary key autoincrement, s text)")
        writer.begin()
        insert(pair, rows(625), "n")
        writer.run(pair.gate.examine("create table made as select id, s from n"), ())
        writer.run(pair.gate.examine("delete from n where id > 600"), ())
        insert(pair, rows(10, start=601), "n")
        writer.run(pair.gate.examine("alter table n add column more int default 5"), ())
        pair.send(writer.finish([], ""))
        assert pair.parts > 2
        assert (count(pair, "n"), count(pair, "made")) == (610, 625)
        writer.begin()
        writer.run(pair.gate.examine("insert into n(s) values('next')"), ())
        pair.send(writer.finish([], ""))
        assert pair.reader.execute("select max(id) from n").fetchall() == [(626,)]

    scene(tmp_path, play)


def test_rows_that_a_dropped_table_takes_along_are_kept(tmp_path: Path) -> None:
    def play(pair: Pair) -> None:
        pair.script("create table child(id integer primary key, p int references t(id) on delete set null, pad text)")
        writer = pair.writer
        writer.begin()
        insert(pair, rows(625))
        insert(
            pair,
            "select i, i, printf('%0200d', i) from (with recursive c(i) as (select 1 union all select i + 1 from c limit 625) "
            "select i from c)",
            "child",
        )
        pair.send(writer.finish([], ""))
        writer.begin()
        writer.run(pair.gate.examine("drop table t"), ())
        pair.send(writer.finish([], ""))
        assert pair.reader.execute("select count(*), count(p) from child").fetchall() == [(625, 0)]

    scene(tmp_path, play)


def test_a_statement_beyond_the_limit_stops_long_before_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0
    add = ChangeCapture._add

    def counted(self: ChangeCapture, *arguments: object) -> int:
        nonlocal seen
        seen += 1
        return add(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ChangeCapture, "_add", counted)

    def play(pair: Pair) -> None:
        large = pair.gate.examine(f"insert into t {rows(19_000)}")
        pending = pair.writer.run_batch([AutocommitRequest(large, ())])
        error = pending.answers[0].error
        assert error is not None
        assert (error.sqlstate, error.hint) == ("54000", "Use several smaller transactions. The limit is node.transaction_bytes.")
        pair.send(pending)
        assert count(pair) == 0

    scene(tmp_path, play, max_bytes=256 * KIB)
    assert seen < 3_000, "256 KiB are 1,300 rows"


def test_a_call_of_many_rows_stops_at_the_limit_of_a_transaction(tmp_path: Path) -> None:
    def play(pair: Pair) -> None:
        pair.writer.begin()
        counts: list[int] = []
        with pytest.raises((SqlError, TransactionLost)) as refused:
            pair.writer.run_many(pair.gate.examine("insert into t values(?1, ?2)"), [(n, "x" * 3_000) for n in range(100)], counts)
        error = refused.value.error if isinstance(refused.value, TransactionLost) else refused.value
        assert isinstance(error, SqlError)
        assert error.sqlstate == "54000"
        assert len(counts) < 50
        pair.writer.rollback()

    scene(tmp_path, play, max_bytes=128 * KIB)


def test_a_row_that_fits_no_entry_is_refused_and_one_that_fits_is_not(tmp_path: Path) -> None:
    def play(pair: Pair) -> None:
        for size, sqlstate in ((120_000, None), (140_000, "54000")):
            pending = pair.writer.run_batch(
                [AutocommitRequest(pair.gate.examine(f"insert into t values({size}, printf('%0{size}d', 1))"), ())]
            )
            error = pending.answers[0].error
            assert (None if error is None else error.sqlstate) == sqlstate
            pair.send(pending)
        pair.writer.begin()
        for number in range(5):
            insert(pair, f"values({number}, printf('%0120000d', 1))")
        pair.send(pair.writer.finish([], ""))
        assert (count(pair), pair.parts) == (6, 6)

    scene(tmp_path, play)


def test_a_full_temporary_folder_fails_the_statement_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: SpooledChanges, *arguments: object) -> None:
        raise apsw.FullError("FullError: database or disk is full")

    def play(pair: Pair) -> None:
        writer = pair.writer
        writer.begin()
        insert(pair, rows(3))
        with monkeypatch.context() as patch:
            patch.setattr(SpooledChanges, "add", full)
            with pytest.raises(SqlError, match="spooled") as refused:
                insert(pair, rows(625, start=10))
        assert refused.value.sqlstate == "53100"
        pair.send(writer.finish([], ""))
        assert count(pair) == 3

    scene(tmp_path, play)
