"""A writer begins to roll when its segment is due even if no next ledger exists."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/writing/test_log_writer_short_of_bookies.py::test_a_roll_without_bookies_is_put_off_and_done_when_they_are_back"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.rolling_policy import RollingPolicy, RollStep

    step = RollingPolicy.step

    def due(self: RollingPolicy, now: float, size_bytes: int, *, has_records: bool) -> RollStep:
        return RollStep.ROLL if size_bytes >= self._roll_bytes else step(self, now, size_bytes, has_records=has_records)

    patch(RollingPolicy, "step", due)
