"""All statements of a run are answered as completed, also those after a failed one."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.statement_runs import StatementRuns, _ExecutionRun

TESTS = ["tests/unit/sql/pg/protocol/test_statement_runs.py::test_a_failed_statement_ends_the_run"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    answer = StatementRuns._answer

    def answered(self: StatementRuns, run: _ExecutionRun, tag: str, _counts: object) -> None:
        answer(self, run, tag, [1] * len(run.rows))

    patch(StatementRuns, "_answer", answered)
