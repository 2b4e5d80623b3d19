"""The judge of the histories accepts a read at a level that shows a part of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.histories.levels import Answer, LevelHistory, Mark

TESTS = [
    "tests/unit/benchmarks/histories/test_levels.py::test_no_read_sees_a_part_of_a_batch",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = LevelHistory.judge

    def judge(
        history: LevelHistory, level: str, began_at: float, bound_s: float, mark: Mark | None, least: int, answer: Answer, where: object
    ) -> None:
        right(history, level, began_at, bound_s, mark, least, replace(answer, is_torn=False), where)

    patch(LevelHistory, "judge", judge)
