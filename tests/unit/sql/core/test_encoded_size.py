"""A transaction's bytes are bounded while its rows come, and one that is too large stops then."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.property.rowlog_workload import Pair
from triplicate.errors import SqlError
from triplicate.sql.core import batch_builder, encoded_size
from triplicate.sql.core.encoded_size import ByteCount
from triplicate.sql.core.records import RowKind, RowRun, TableDictionary, Transaction, encode_transaction
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.executor import writer_connection as writer_module
from triplicate.sql.executor.change_capture import ChangeCapture
from triplicate.sql.executor.interrupts import TransactionLost
from triplicate.sql.executor.statement_batches import AutocommitRequest

SHAPE = TableShape("t", ("id", "a", "b"), ("INTEGER", "", ""), (0,), 0)
NUMBERS = "with recursive c(i) as (select 1 union all select i + 1 from c limit 300)"
VALUES = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(max_size=20), st.binary(max_size=20))
ROWS = st.lists(st.tuples(st.sampled_from([RowKind.INSERT, RowKind.UPDATE]), VALUES, VALUES), min_size=1, max_size=60)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    made.close()


def _runs(rows: list[tuple[RowKind, object, object]]) -> Iterator[RowRun]:
    start = 0
    while start < len(rows):
        end = start
        while end < len(rows) and rows[end][0] is rows[start][0]:
            end += 1
        part = rows[start:end]
        numbers = list(range(start, end))
        columns: list[list[Any]] = [numbers, [row[1] for row in part], [row[2] for row in part]]
        yield RowRun(SHAPE, part[0][0], len(part), rowids=numbers, new=columns)
        start = end


@settings(max_examples=examples(200))
@given(rows=ROWS, cuts=st.lists(st.integers(1, 25), max_size=8))
def test_the_least_size_is_never_more_than_what_is_encoded(rows: list[tuple[RowKind, object, object]], cuts: list[int]) -> None:
    count = ByteCount(lambda start, end: _runs(rows[start:end]), limit=0)
    reached = 0
    for cut in [*cuts, len(rows)]:
        reached = min(len(rows), reached + cut)
        count.most = 1 << 30
        count.exceeds(reached)
    encoded = encode_transaction(Transaction(1, list(_runs(rows)), "", ()), TableDictionary())
    assert count.least <= len(encoded)


def test_a_row_takes_no_more_than_it_is_counted_with(pair: Pair) -> None:
    # The bound from above is what decides whether anything is measured at all.
    pair.script("create table t(id integer primary key, a, b text, c blob)")
    pair.script("alter table t set (change_images = full)")
    writer = pair.writer
    writer.begin()
    for sql in (
        f"insert into t {NUMBERS} select i, i * 1e17, 'é' || i, x'00ff' from c",
        "update t set a = 'x' || a, b = null where id % 2",
        "delete from t where id % 3 = 0",
    ):
        writer.run(pair.gate.examine(sql), ())
    most = writer._capture._bytes.most
    record = writer.finish([], "").records[0]
    assert len(record) <= most


def test_a_statement_that_changes_too_much_stops_long_before_its_end(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    # 60,000 rows of 200 characters: 12 MB, three times the limit.
    pair.script("create table t(id integer primary key, s text)")
    large = pair.gate.examine(
        "insert into t with recursive c(i) as (select 1 union all select i + 1 from c limit 60000) select i, printf('%0200d', i) from c"
    )
    seen = 0
    add = ChangeCapture._add

    def counted(self: ChangeCapture, *arguments: object) -> int:
        nonlocal seen
        seen += 1
        return add(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ChangeCapture, "_add", counted)
    first, last = (pair.gate.examine(f"insert into t values({number}, 'kept')") for number in (-1, -2))
    pending = pair.writer.run_batch([AutocommitRequest(first, ()), AutocommitRequest(large, ()), AutocommitRequest(last, ())])
    errors = [answer.error for answer in pending.answers]
    assert (errors[0], errors[2]) == (None, None)
    assert errors[1] is not None
    assert errors[1].sqlstate == "54000"
    assert errors[1].hint == "Use several smaller transactions."
    # Half of the rows at most: 4 MiB are 20,700 of them.
    assert seen < 30_000
    pair.send(pending)
    assert pair.reader.execute("select count(*) from t").fetchall() == [(2,)]


def test_many_small_rows_count_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_builder, "MAX_ENTRY_BYTES", 512 * 1024)
    monkeypatch.setattr(writer_module, "MAX_TRANSACTION_BYTES", 448 * 1024)
    pair = Pair(tmp_path)
    pair.script("create table t(id integer primary key, n int, s text)")
    writer = pair.writer
    for start in range(0, 100_000, 25_000):
        rows = f"with recursive c(i) as (select {start + 1} union all select i + 1 from c limit 25000) select i, i, null from c"
        writer.begin()
        writer.run(pair.gate.examine(f"insert into t {rows}"), ())
        pair.send(writer.finish([], ""))
    writer.begin()
    with pytest.raises(TransactionLost) as lost:
        writer.run(pair.gate.examine("update t set n = n + 1"), ())
    assert lost.value.error.sqlstate == "54000"
    # Number and value of a row take eight bytes: 57,000 of them fit.
    found = re.search(r"row (\d+) goes beyond", lost.value.error.message)
    assert found is not None
    assert 57_000 < int(found[1]) < 80_000
    writer.begin()
    # A deleted row takes its number alone: all of them fit.
    writer.run(pair.gate.examine("delete from t"), ())
    pair.send(writer.finish([], ""))
    pair.close()


def test_what_a_failed_statement_counted_does_not_stop_the_next(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_size, "_MEASURED_ROWS", 1)
    pair.script("create table t(a int, b blob)")
    writer = pair.writer
    writer.begin()
    one = pair.gate.examine("insert into t values(1, zeroblob(1000000))")
    bad = pair.gate.examine("insert into t values(1, zeroblob(900000)), ('x', null)")
    for _ in range(3):
        writer.run(one, ())
        with pytest.raises(SqlError, match="integer"):
            writer.run(bad, ())
    writer.savepoint("s")
    with pytest.raises(SqlError) as caught:
        writer.run(pair.gate.examine("insert into t values(1, zeroblob(1500000))"), ())
    assert caught.value.sqlstate == "54000"
    writer.rollback_to("s")
    writer.run(one, ())
    pair.send(writer.finish([], ""))
    assert pair.reader.execute("select count(*) from t").fetchall() == [(4,)]
