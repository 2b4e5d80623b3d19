"""The bound of an open ledger counts a bookie that did not answer as one that stores nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

TESTS = [
    "tests/unit/autorecovery/core/test_open_refill.py::test_a_silent_bookie_may_have_stored_what_the_old_disks_did",
    "tests/unit/autorecovery/core/test_open_refill.py::test_a_bound_that_overlooks_a_silent_bookie_would_be_too_small",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.core.open_refill import LastStored, OpenRefillBound
    from triplicate.ledger import EnsembleSegment

    real = OpenRefillBound.begin

    def begin(
        bound: OpenRefillBound,
        segment: EnsembleSegment,
        bookie_id: str,
        write_quorum: int,
        ack_quorum: int,
        answers: Mapping[str, LastStored],
    ) -> None:
        nothing = {name: LastStored(-1, -1) for name in segment.ensemble}
        real(bound, segment, bookie_id, write_quorum, ack_quorum, {**nothing, **answers})

    patch(OpenRefillBound, "begin", begin)
