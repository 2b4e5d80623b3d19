"""The gap after a fault ends with the acknowledgement of a write that was begun before the fault."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from benchmarks.machines.probes import Writes

TESTS = ["tests/unit/benchmarks/machines/test_faults.py::test_a_gap_ends_with_the_acknowledgement_of_a_write_begun_after_the_fault"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def first_after(self: Writes, moment: float) -> float | None:
        index = bisect_right(self.acknowledged_at, moment)
        return self.acknowledged_at[index] if index < len(self.acknowledged_at) else None

    patch(Writes, "first_after", first_after)
