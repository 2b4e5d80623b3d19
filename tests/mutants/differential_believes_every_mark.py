"""The comparison with PostgreSQL accepts every mark of the corpus unchecked, so the list of differences becomes outdated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tests.differential import runner
from tests.differential.corpus import Statement

TESTS = ["tests/differential/test_comparison.py::test_a_mark_must_be_true"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    judge = runner.judge

    def believe(statement: Statement, pairs: Sequence[runner.Pair], known: Collection[str]) -> runner.Verdict:
        return runner.Verdict(statement, statement.mark) if statement.mark else judge(statement, pairs, known)

    patch(runner, "judge", believe)
