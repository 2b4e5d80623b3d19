"""A state's p99 is that of its worst window, so one stall of the disk decides the comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TESTS = ["tests/unit/benchmarks/ledger/test_in_turn.py::test_a_stall_in_one_window_decides_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from benchmarks.ledger import in_turn
    from benchmarks.ledger.cases import Figures

    def worst(windows: Sequence[Figures]) -> Figures:
        figures = medians(windows)
        return {**figures, "p99_ms": figures["p99_most_ms"]}

    medians = in_turn.over_windows
    patch(in_turn, "over_windows", worst)
