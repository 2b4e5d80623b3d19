"""A database's file as it was within a batch: some of the transactions that share one entry of the log."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from tests.unit.sql.history_rig import TimedPair
from triplicate.errors import BackupDamaged
from triplicate.runtime import real_host
from triplicate.sql.backup.core.record_file import BatchFrame
from triplicate.sql.backup.core.target import AtPosition, TargetSearch
from triplicate.sql.backup.work_file import WorkFile, WorkFileState
from triplicate.sql.core import batch_builder
from triplicate.sql.core.records import TableDictionary, decode_header, decode_transaction, encode_header, encode_transaction
from triplicate.sql.executor import change_capture, staged_parts
from triplicate.sql.storage.applier import LogBatch

STATEMENTS = (
    "create table t(id integer primary key, v text)",
    "insert into t(v) values('one')",
    "alter table t add column w int",
    "insert into t(v, w) values('two', 2)",
    "create table u(a)",
)


def batches_of(folder: Path) -> list[LogBatch]:
    """The statements, each in a batch of its own."""
    folder.mkdir()
    pair = TimedPair(folder)
    for statement in STATEMENTS:
        pair.run(statement)
    pair.close()
    return pair.batches


def joined(batches: list[LogBatch]) -> BatchFrame:
    """Batches that follow one another, as one of several transactions."""
    tables = TableDictionary()
    headers = [decode_header(batch.preamble or b"") for batch in batches]
    records = [
        encode_transaction(decode_transaction(record, header.tables), tables)
        for batch, header in zip(batches, headers, strict=True)
        for record in batch.records
    ]
    last = headers[-1]
    header = replace(headers[0], schema_version_after=last.schema_version_after, digest_after=last.digest_after)
    return BatchFrame(0, 1, encode_header(replace(header, tables=tuple(tables.shapes))), records)


def through(folder: Path, frames: list[BatchFrame], position: int) -> tuple[WorkFileState, list[object]]:
    """The state of a file with everything before a position, and its content."""

    async def body() -> WorkFileState:
        file = WorkFile(real_host("test"), str(folder / f"{position}.db"), b"d" * 16)
        file.open()
        try:
            file.apply(frames, TargetSearch(AtPosition(position), 0))
            return file.close()
        finally:
            file.release()

    state = asyncio.run(body())
    connection = apsw.Connection(str(folder / f"{position}.db"))
    try:
        names = [str(name) for (name,) in connection.execute("select name from sqlite_schema where name in ('t', 'u') order by name")]
        rows = [connection.execute(f"select * from {name}").fetchall() for name in names]
        ids = connection.execute("select first_id, last_id from triplicate_transactions").fetchall()
        return state, [names, rows, ids]
    finally:
        connection.close(True)


def test_a_file_takes_a_change_of_tables_beside_a_view_over_a_view(tmp_path: Path) -> None:
    """ALTER TABLE resolves the columns of all views, which call functions."""
    (tmp_path / "pair").mkdir()
    pair = TimedPair(tmp_path / "pair")
    views = ("create view v as select triplicate_md5(a) as q from u", "create view w as select q from v")
    for statement in (STATEMENTS[0], STATEMENTS[-1], *views, "alter table t rename column v to x"):
        pair.run(statement)
    pair.close()
    _, (_, rows, _) = through(tmp_path, [joined(pair.batches)], 99)
    assert rows == [[], []]


def test_a_file_ends_between_two_transactions_of_one_entry(tmp_path: Path) -> None:
    batches = batches_of(tmp_path / "pair")
    singles = [BatchFrame(batch.first_offset, batch.epoch, batch.preamble or b"", batch.records) for batch in batches]
    whole = joined(batches)
    for folder in ("singles", "whole"):
        (tmp_path / folder).mkdir()
    for position in range(1, len(STATEMENTS) + 1):
        expected = through(tmp_path / "singles", singles, position)
        assert expected[0].position == position
        assert through(tmp_path / "whole", [whole], position) == expected


def test_batches_that_do_not_fit_the_file_are_damage(tmp_path: Path) -> None:
    batches = batches_of(tmp_path / "pair")
    frames = [BatchFrame(batch.first_offset, batch.epoch, batch.preamble or b"", batch.records) for batch in batches]
    with pytest.raises(BackupDamaged, match="do not fit"):
        through(tmp_path, frames[1:], len(STATEMENTS))


def test_a_position_between_the_parts_of_a_transaction_is_the_state_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_capture, "PIECE_BYTES", 300)
    monkeypatch.setattr(staged_parts, "PART_BYTES", 300)
    monkeypatch.setattr(batch_builder, "MAX_ENTRY_BYTES", batch_builder.ENTRY_MARGIN_BYTES + 300)
    (tmp_path / "pair").mkdir()
    pair = TimedPair(tmp_path / "pair")
    delivered: list[LogBatch] = []
    monkeypatch.setattr(pair, "deliver", delivered.append)
    pair.script(STATEMENTS[0])
    pair.writer.begin()
    counted = "with recursive c(i) as (values(1) union all select i + 1 from c limit 400)"
    pair.writer.run(pair.gate.examine(f"insert into t {counted} select i, i from c"), ())
    pair.send(pair.writer.finish([], ""))
    pair.close()
    frames = [BatchFrame(batch.first_offset, 1, batch.preamble or b"", list(batch.records)) for batch in delivered]
    assert len(frames) > 4
    for position, rows in ((1, 0), (2, 0), (len(frames) - 1, 0), (len(frames), 400)):
        state, content = through(tmp_path, frames, position)
        assert state.position == (len(frames) if rows else 1)
        assert len(content[1][0]) == rows  # type: ignore[index]
