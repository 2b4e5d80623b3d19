"""A bookie that answered its probe in time stays in quarantine."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger.bookie_health import Ailment, BookieHealth

TESTS = [
    "tests/unit/client/test_hedged_reads.py::test_a_slow_bookie_is_read_last_until_a_probe_is_answered_in_time",
    "tests/unit/ledger/test_bookie_health.py::test_a_probe_that_is_answered_ends_the_quarantine",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    honest = BookieHealth.end_probe

    def unmoved(self: BookieHealth, bookie_id: str, ailment: Ailment | None, now: float) -> bool:
        return honest(self, bookie_id, Ailment.SLOW if ailment is None else ailment, now)

    patch(BookieHealth, "end_probe", unmoved)
