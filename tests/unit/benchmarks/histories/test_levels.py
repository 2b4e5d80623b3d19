"""The verdicts on reads at the levels of a session."""

from __future__ import annotations

import pytest

from benchmarks.histories.levels import Answer, LevelHistory, Mark
from benchmarks.histories.stages import Kind, Result, Stages

MARKS = [Mark(1, 10, 100.0), Mark(2, 11, 101.0), Mark(3, 12, 105.0)]
NODE = ("127.0.0.1", 20001)


def history() -> LevelHistory:
    return LevelHistory(Kind.SQL_LEVELS, Stages(), list(MARKS))


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
    read = history()
    read.judge(level, began_at, 4.0, MARKS[1], 0, Answer(12, frozenset(found)), NODE)
    assert bool(read.violations) is is_wrong
    assert read.reads[level] == 1


@pytest.mark.parametrize(
    ("age_s", "found", "is_wrong"),
    [(0.0, {1, 2, 3}, False), (0.0, {1, 2}, True), (2.0, {1, 2}, False), (2.0, {1, 3}, True), (7.0, set(), False), (None, set(), False)],
)
@pytest.mark.parametrize("level", ["any", "session"])
def test_an_answer_has_the_marks_of_its_age(level: str, age_s: float | None, found: set[int], is_wrong: bool) -> None:
    read = history()
    read.judge(level, 106.0, 4.0, None, 0, Answer(12, frozenset(found), age_s=age_s), NODE)
    assert bool(read.violations) is is_wrong
    assert read.ages == (age_s is not None)


def test_a_session_sees_no_fewer_marks_than_before() -> None:
    read = history()
    read.judge("session", 200.0, 4.0, MARKS[0], 3, Answer(12, frozenset({1, 2})), NODE)
    assert read.violations == [f"a session saw 3 marks, and 2 later at {NODE}"]


@pytest.mark.parametrize("level", ["linearizable", "session", "bounded", "any"])
def test_no_read_sees_a_part_of_a_batch(level: str) -> None:
    read = history()
    read.judge(level, 100.5, 4.0, MARKS[0], 0, Answer(12, frozenset({1, 2, 3}), is_torn=True), NODE)
    assert len(read.violations) == 1


def test_a_wrong_read_is_blamed_on_its_stage() -> None:
    read = history()
    for fault in ("killed", "stopped"):
        read.stages.begin(fault)
        read.judge("linearizable", 200.0, 0.0, None, 0, Answer(0, frozenset() if fault == "killed" else frozenset({1, 2, 3})), NODE)
    read.refuse("STALE")
    assert read.wrong == {1}
    assert read.stages.counts == {
        (1, Kind.SQL_LEVELS, Result.ANSWERED): 1,
        (2, Kind.SQL_LEVELS, Result.ANSWERED): 1,
        (2, Kind.SQL_LEVELS, Result.REFUSED): 1,
    }
