"""A reader of a transaction on the event loop: the limits there, and that they end with each call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import apsw
import pytest

from triplicate.runtime import Worker
from triplicate.sql.executor.examined_schema import NewestSchema
from triplicate.sql.executor.interrupts import StopFlag
from triplicate.sql.executor.reader_connection import ReaderConnection


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[ReaderConnection]:
    path = str(tmp_path / "copy.db")
    connection = apsw.Connection(path)
    connection.execute("create table t(id integer primary key, a text)")
    connection.execute("with recursive c(x) as (select 1 union all select x + 1 from c limit 20000) insert into t select x, 'a' from c")
    connection.execute("insert into t values(0, ?)", ("x" * 100_000,))
    connection.execute("create table triplicate_state(database, position, epoch, batch, schema_version, pruned_through, diverged)")
    connection.execute("insert into triplicate_state values('', 7, 1, 1, 1, 0, null)")
    connection.close()
    no_worker = cast("Worker", None)  # These tests run everything in the caller.
    reader = ReaderConnection(no_worker, path, None, NewestSchema())
    yield reader
    reader._close()


def test_the_limits_of_the_loop_end_with_the_call(reader: ReaderConnection) -> None:
    scan, long_row = reader.examine("select max(a) from t where id > 0"), reader.examine("select a from t where id = 0")
    assert reader.begin_now() == 7
    for prepared, answer in ((scan, [("a",)]), (long_row, [("x" * 100_000,)])):
        assert reader.read_now(prepared, ()) is None
        assert reader.start(prepared, (), StopFlag()) == (None, answer)
    connection = reader._open().connection
    assert connection.execute("pragma busy_timeout").get == 5000
    assert reader.examine_now("select nosuch from t") is None
    found = reader.examine_now("select a from t where id = $1")
    assert found is not None
    assert reader.read_now(found, (1,)) == [("a",)]
    reader.end()
    assert not connection.in_transaction


def test_a_snapshot_of_a_locked_file_is_begun_by_the_thread(reader: ReaderConnection) -> None:
    reader.examine("select 1")
    other = apsw.Connection(reader._path)
    other.execute("begin exclusive")
    assert reader.begin_now() is None
    assert not reader._open().connection.in_transaction
    other.execute("commit")
    other.close()
    assert reader.begin_now() == 7
