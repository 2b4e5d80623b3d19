"""The files of the clients of logs become the histories that the verdicts judge."""

from __future__ import annotations

from pathlib import Path

from benchmarks.soak.log_load import history_of, record_of
from benchmarks.soak.verdicts import judge_order, judge_records


def test_files_become_a_history(tmp_path: Path) -> None:
    (tmp_path / "plain.writer").write_text("s 0\ns 1\na 0 4\ns 2\na 1 5\n")
    (tmp_path / "plain.tailer-1").write_text("4 0\n5 1\n")
    (tmp_path / "plain.tailer-2").write_text("4 0\n")
    (tmp_path / "plainer.tailer-1").write_text("0 0\n")
    history = history_of(tmp_path, "plain", [(4, 0), (5, 1)])
    assert history.acknowledged == {4: 0, 5: 1}
    assert history.sent == {0, 1, 2}
    assert history.tailers == {"plain.tailer-1": [(4, 0), (5, 1)], "plain.tailer-2": [(4, 0)]}
    assert judge_records(history).is_kept
    assert len(judge_order(history).evidence) == 1


def test_the_number_of_a_record() -> None:
    assert record_of(b"17 \x00\xff 3") == 17
    assert record_of(None) == -1
