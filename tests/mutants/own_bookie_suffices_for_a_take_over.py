"""A candidate needs only the bookies of a recovery. With an ack quorum of all copies that is its own: one that is cut off passes."""

from __future__ import annotations

from collections.abc import Callable, Collection

from triplicate.ledger import LedgerMetadata, is_covered
from triplicate.log.core import quorums

TESTS = [
    "tests/unit/log/core/test_quorums.py::test_the_open_segment_can_be_recovered_and_the_next_has_its_ack_quorum",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def covered(open_segment: LedgerMetadata, ack_quorum: int, answered: Collection[str]) -> bool:
        ensemble = open_segment.last_segment.ensemble
        silent = [position for position, bookie_id in enumerate(ensemble) if bookie_id not in answered]
        return is_covered(silent, len(ensemble), open_segment.write_quorum, open_segment.ack_quorum)

    patch(quorums, "suffice_for_take_over", covered)
