"""Windows of groups as nodes note them: parsed, awaited, and matched with the times of faults."""

from __future__ import annotations

import threading
from math import inf
from pathlib import Path

from benchmarks.histories.windows import Window, await_open, faults_in_windows, parse_windows, read_windows


def test_windows_are_parsed_and_one_without_an_end_was_not_committed() -> None:
    assert parse_windows("1.0 0\n1.5 3\n2.0 0\n3.0 0\n3.5 2\n4.0 0\n") == [
        Window(1.0, 1.5, 3),
        Window(2.0, inf, 2),
        Window(3.0, 3.5, 2),
        Window(4.0, inf, 2),
    ]


def test_windows_of_all_processes_are_read(tmp_path: Path) -> None:
    (tmp_path / "7.windows").write_text("1.0 0\n1.5 3\n")
    (tmp_path / "8.windows").write_text("2.0 0\n")
    assert read_windows(tmp_path) == [Window(1.0, 1.5, 3), Window(2.0, inf, 2)]


def test_faults_count_that_began_while_a_window_was_open() -> None:
    windows = [Window(1.0, 1.5, 3), Window(2.0, inf, 2)]
    assert faults_in_windows(windows, [0.9, 1.2, 1.6, 2.4, 2.6], 0.5) == 2


def test_a_window_that_was_open_before_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "7.windows").write_text("1.0 0\n")
    assert not await_open(tmp_path, 0.02)
    later = threading.Timer(0.05, lambda: (tmp_path / "8.windows").write_text("2.0 0\n"))
    later.start()
    assert await_open(tmp_path, 30.0)
    later.join()
