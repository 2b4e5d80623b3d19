"""The judge of the histories does not look at the ages of answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.histories.levels import Answer, LevelHistory

TESTS = ["tests/unit/benchmarks/histories/test_levels.py::test_an_answer_has_the_marks_of_its_age"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    judge: Callable[..., None] = LevelHistory.judge

    def judge_without_ages(history: LevelHistory, *arguments: Any) -> None:
        *others, answer, where = arguments
        assert isinstance(answer, Answer)
        judge(history, *others, replace(answer, age_s=None), where)

    patch(LevelHistory, "judge", judge_without_ages)
