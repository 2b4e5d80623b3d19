"""A batch read whose bookie is silent sets its timer again for the rest of the limit, however short that is."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.hedged_reads import HedgedReads

TESTS = ["tests/unit/client/read/test_batch_read.py::test_a_bookie_that_is_silent_until_the_limit_needs_no_further_timer"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    honest = HedgedReads.is_due

    def is_due(self: HedgedReads, bookie_id: str, waited_s: float, *, has_other: bool) -> bool:
        return waited_s + 0.000001 >= self.limit_s and honest(self, bookie_id, self.limit_s, has_other=has_other)

    patch(HedgedReads, "is_due", is_due)
    patch(HedgedReads, "is_silent", lambda self, waited_s: waited_s >= self.limit_s)
