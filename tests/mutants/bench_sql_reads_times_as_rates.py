"""The benchmark of the SQL layer divides times like rates, so twice the time passes for twice as good."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/benchmarks/sql/test_targets.py::test_a_rate_of_half_the_target_and_a_time_of_twice_the_target_are_half",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from benchmarks.ledger.ratios import Runs, divided
    from benchmarks.sql.targets import SqlTarget

    def as_a_rate(self: SqlTarget, runs: Runs) -> float | None:
        return divided(self.reached(runs), self.wanted(runs))

    patch(SqlTarget, "ratio", as_a_rate)
