"""The parts that the benchmark of the capture adds up do what the leader and a follower do."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.capture_cost import BULK_PARTS, STATEMENTS, Figure, Follower, Part, PartialWriter, Samples, WholeWriter, rows, table
from triplicate.sql.core.records import RowRun, decode_transaction


@pytest.mark.parametrize("part", Part)
def test_each_part_of_the_work_makes_the_same_changes(part: Part, tmp_path: Path) -> None:
    writer = PartialWriter(tmp_path, part)
    for sql, values in (STATEMENTS["insert"], STATEMENTS["update"]):
        writer.run(sql, [row[:values] for row in rows(1, 3)])
    sql, values = STATEMENTS["delete"]
    writer.run(sql, [rows(2, 1)[0][:values]])
    assert [row[0] for row in writer.connection.execute("select id from t")] == [1, 3]


def test_the_last_part_leaves_what_the_leader_leaves(tmp_path: Path) -> None:
    partial, whole = PartialWriter(tmp_path, Part.RECORD), WholeWriter(tmp_path)
    sql, _ = STATEMENTS["insert"]
    found = []
    for writer in (partial, whole):
        writer.run(sql, rows(1, 2))
        writer.run(sql, rows(3, 1))
        found.append(
            [writer.connection.execute(f"select * from {name}").fetchall() for name in ("t", "triplicate_transactions", "triplicate_kept")]
        )
    follower = Follower(tmp_path)
    follower.apply(whole.entries)
    whole.close()
    assert found[0] == found[1]
    assert follower.connection.execute("select * from t").fetchall() == found[1][0]


def test_a_record_of_many_rows_reaches_a_follower(tmp_path: Path) -> None:
    assert Part.ENCODE in BULK_PARTS
    writer = PartialWriter(tmp_path, Part.ENCODE)
    writer.run_bulk(STATEMENTS["insert"][0], rows(0, 5))
    (run,) = decode_transaction(writer.sent.record, writer.sent.tables).operations
    assert isinstance(run, RowRun)
    assert run.count == 5
    Follower(tmp_path).try_out(writer.sent)


def test_the_table_has_the_ratio_to_plain_sqlite() -> None:
    samples = Samples()
    for column in ("sqlite", "encode"):
        samples.add(Figure("insert", 16, column), 4, lambda: None)
    assert set(samples.medians()) == {Figure("insert", 16, "sqlite"), Figure("insert", 16, "encode")}
    text = table({Figure("insert", 16, "sqlite"): 2.0, Figure("insert", 16, "encode"): 5.0})
    assert text.splitlines()[1].split() == ["insert", "16", "2.00", "(1.00)", "5.00", "(2.50)"]
