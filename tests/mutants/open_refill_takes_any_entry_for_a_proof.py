"""The bound of an open ledger trusts the first entry behind the horizon, although silent bookies may have confirmed it alone."""

from __future__ import annotations

from collections.abc import Callable, Collection

TESTS = [
    "tests/unit/autorecovery/core/test_open_refill.py::test_no_entry_of_the_old_disks_is_behind_the_end",
    "tests/unit/autorecovery/core/test_open_refill.py::test_the_proof_is_an_entry_that_the_silent_bookies_cannot_have_confirmed_alone",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.core import open_refill
    from triplicate.ledger import EnsembleSegment

    real = open_refill._first_proof

    def first_proof(segment: EnsembleSegment, write_quorum: int, ack_quorum: int, horizon: int, doubtful: Collection[str]) -> int | None:
        found = real(segment, write_quorum, ack_quorum, horizon, doubtful)
        return None if found is None else horizon + 1

    patch(open_refill, "_first_proof", first_proof)
