"""The bound of an open ledger is refused if any bookie is silent, also where no entry is on it and on the bookie with new disks."""

from __future__ import annotations

from collections.abc import Callable, Collection

TESTS = [
    "tests/unit/autorecovery/core/test_open_refill.py::test_a_silent_bookie_that_shares_no_write_set_is_no_obstacle",
    "tests/unit/autorecovery/test_bookie_refill_real_bookies.py::test_two_bookies_that_share_no_entry_are_refilled_beside_their_writer",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.core import open_refill
    from triplicate.ledger import EnsembleSegment

    def first_proof(segment: EnsembleSegment, write_quorum: int, ack_quorum: int, horizon: int, doubtful: Collection[str]) -> int | None:
        return horizon + 1 if len(doubtful) < ack_quorum else None

    patch(open_refill, "_first_proof", first_proof)
