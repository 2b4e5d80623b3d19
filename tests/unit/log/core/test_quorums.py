"""Which bookies must answer a process that takes a log over: those of the open segment, and an ack quorum for the next."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

from triplicate.ledger import DigestType, EnsembleSegment, LedgerMetadata, is_covered
from triplicate.log.core.quorums import others_may_be_needed, suffice_for_take_over


def ledger(ensemble: str, write_quorum: int, ack_quorum: int) -> LedgerMetadata:
    return LedgerMetadata(
        ensemble_size=len(ensemble),
        write_quorum=write_quorum,
        ack_quorum=ack_quorum,
        segments=(EnsembleSegment(0, tuple("uvwxyz"[: len(ensemble)])), EnsembleSegment(5, tuple(ensemble))),
        digest_type=DigestType.CRC32C,
        password=b"",
        custom={},
        ctime_ms=0,
    )


@pytest.mark.parametrize(
    ("open_segment", "ack_quorum", "answered", "suffice"),
    [
        (ledger("abc", 3, 2), 2, "ab", True),
        (ledger("abc", 3, 2), 2, "a", False),
        # The bookies of an earlier ensemble do not count for the recovery.
        (ledger("abc", 3, 2), 2, "auvw", False),
        # The bookie on its own machine is enough for the recovery, and not for entries that follow.
        (ledger("ab", 2, 2), 2, "a", False),
        (ledger("abc", 3, 3), 3, "a", False),
        (ledger("abc", 3, 3), 3, "abd", True),
        # The log asks for more acknowledgements than its open segment.
        (ledger("abc", 3, 2), 3, "ab", False),
        (ledger("abc", 3, 2), 3, "abd", True),
        # Two of six are unknown: an ack quorum hides among neighbours.
        (ledger("abcdef", 2, 2), 2, "bcef", True),
        (ledger("abcdef", 2, 2), 2, "cdef", False),
        (ledger("a", 1, 1), 1, "", False),
        (ledger("a", 1, 1), 1, "a", True),
    ],
)
def test_the_open_segment_can_be_recovered_and_the_next_has_its_ack_quorum(
    open_segment: LedgerMetadata, ack_quorum: int, answered: str, suffice: bool
) -> None:
    assert suffice_for_take_over(open_segment, ack_quorum, answered) is suffice


@pytest.mark.parametrize(("write_quorum", "ack_quorum"), [(3, 2), (3, 3), (2, 2), (2, 1), (1, 1), (4, 3)])
def test_other_bookies_are_needed_only_where_a_recovery_may_be_content_with_fewer_than_an_ack_quorum(
    write_quorum: int, ack_quorum: int
) -> None:
    names = "abcd"[:write_quorum]
    open_segment = ledger(names, write_quorum, ack_quorum)
    subsets = chain.from_iterable(combinations(range(write_quorum), count) for count in range(write_quorum + 1))
    recoverable = [
        answered for answered in subsets if is_covered(set(range(write_quorum)) - set(answered), write_quorum, write_quorum, ack_quorum)
    ]
    fewest = min(len(answered) for answered in recoverable)
    assert others_may_be_needed(open_segment, ack_quorum) is (fewest < ack_quorum)
