"""Totals of a log are read from the metrics, and PostgreSQL's user may enter the folder of a side."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.ledger.processes import CaseFailed
from benchmarks.sql.servers import LogTotals, checked_out, data_folder, metric_sum

TEXT = """# HELP triplicate_log_bytes_appended_total Bytes of the entries acknowledged, compressed.
triplicate_log_bytes_appended_total{log="a"} 100.0
triplicate_log_bytes_appended_total{log="b"} 23.0
triplicate_log_bytes_appended_total_of_others 5.0
triplicate_log_plain_total 7.0
"""


def test_a_metric_is_summed_over_its_labels() -> None:
    assert metric_sum(TEXT, "triplicate_log_bytes_appended_total") == 123
    assert metric_sum(TEXT, "triplicate_log_plain_total") == 7
    assert metric_sum(TEXT, "triplicate_log_gone_total") == 0


def test_totals_since_earlier_ones_are_differences() -> None:
    assert LogTotals(5, 900, 60).since(LogTotals(2, 100, 10)) == LogTotals(3, 800, 50)


def test_the_data_of_a_side_is_deleted_also_after_an_error(tmp_path: Path) -> None:
    made: list[Path] = []

    def interrupted() -> None:
        with data_folder(tmp_path / "data") as folder:
            made.append(folder)
            (folder / "file").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [folder.exists() for folder in made] == [False]


def test_data_stays_below_the_base_only_if_any_user_may_pass_through(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with data_folder(closed / "data") as folder:
        assert not folder.is_relative_to(closed)


def test_a_commit_that_is_not_there_is_a_failure_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(CaseFailed, match="no-such-commit"):
        checked_out("no-such-commit", tmp_path / "before")
