"""The verdict of a soak run accepts a tailer that misses the last records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.soak import verdicts
from benchmarks.soak.verdicts import LogHistory, Verdict

TESTS = [
    "tests/unit/benchmarks/soak/test_verdicts.py::test_a_tailer_that_misses_doubles_or_exchanges_records_is_reported",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    judge_order = verdicts.judge_order

    def forgiving(history: LogHistory) -> Verdict:
        least = min(map(len, history.tailers.values()), default=0)
        return judge_order(
            replace(history, final=history.final[:least], tailers={name: got[:least] for name, got in history.tailers.items()})
        )

    patch(verdicts, "judge_order", forgiving)
