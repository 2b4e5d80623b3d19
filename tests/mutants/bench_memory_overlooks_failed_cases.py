"""The benchmark reports the memory of successful cases only, so a case that fails for want of memory does not show."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/benchmarks/ledger/test_ratios.py::test_memory_is_open_when_the_stalled_disk_was_not_measured",
    "tests/unit/benchmarks/ledger/test_ratios.py::test_memory_is_open_when_any_case_on_our_bookies_failed",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from benchmarks.ledger.ratios import OURS, Runs

    def of_what_is_there(self: Runs) -> float | None:
        runs = [run for run in self.runs if run.side == OURS and run.figures is not None]
        return max([mib for run in runs for mib in run.memory_mib.values()], default=None)

    patch(Runs, "our_memory_mib", of_what_is_there)
