"""The benchmark measures all windows of one state before the other's, so a machine that slows down decides the comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping

TESTS = [
    "tests/unit/benchmarks/ledger/test_in_turn.py::test_windows_of_two_states_alternate",
    "tests/unit/benchmarks/ledger/test_in_turn.py::test_few_and_many_ledgers_hold_as_much_and_are_measured_in_turn",
    "tests/unit/benchmarks/ledger/test_in_turn.py::test_writers_with_and_without_readers_are_measured_in_turn",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from benchmarks.ledger import in_turn
    from benchmarks.ledger.cases import Figures

    def one_by_one(states: Mapping[str, Callable[[], Figures]], count: int) -> dict[str, Figures]:
        return {name: in_turn.over_windows([window() for _ in range(count)]) for name, window in states.items()}

    patch(in_turn, "alternated", one_by_one)
