"""The verdicts on reads at the levels of a session."""

from __future__ import annotations

import pytest

from benchmarks.histories.levels import LevelHistory, Mark

MARKS = [Mark(1, 10, 100.0), Mark(2, 11, 101.0), Mark(3, 12, 105.0)]


@pytest.mark.parametrize(
    ("level", "began_at", "found", "is_wrong"),
    [
        ("bounded", 106.0, {1, 2}, False),
        ("bounded", 106.0, {1, 3}, True),
        ("bounded", 120.0, {1, 2}, True),
        ("linearizable", 104.0, {1, 2}, False),
        ("linearizable", 106.0, {1, 2}, True),
        ("any", 1000.0, set(), False),
        ("session", 1000.0, {1, 2}, False),
        ("session", 1000.0, {1, 3}, True),
    ],
)
def test_a_read_has_the_marks_of_its_level(level: str, began_at: float, found: set[int], is_wrong: bool) -> None:
    history = LevelHistory(list(MARKS))
    history.judge(level, began_at, 4.0, MARKS[1], 0, frozenset(found), 20001)
    assert bool(history.violations) is is_wrong
    assert history.reads[level] == 1


def test_a_session_sees_no_fewer_marks_than_before() -> None:
    history = LevelHistory(list(MARKS))
    history.judge("session", 200.0, 4.0, MARKS[0], 3, frozenset({1, 2}), 20001)
    assert history.violations == ["a session saw 3 marks, and 2 later at port 20001"]
