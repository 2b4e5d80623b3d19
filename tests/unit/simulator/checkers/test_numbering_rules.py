"""The judge of producers that number their records, held to histories written by hand."""

from __future__ import annotations

import pytest

from triplicate_simulator.checkers.history import History, judge
from triplicate_simulator.checkers.log_rules import FinalLogRead, LogRead
from triplicate_simulator.checkers.numbered_events import NumberedAcknowledged, NumberedRefused, NumberedSubmitted
from triplicate_simulator.checkers.numbering_rules import NUMBERING_CHECKERS


def offered(*sequences: int) -> list[object]:
    return [NumberedSubmitted(1.0, "l", "p", sequence, b"p%d" % sequence) for sequence in sequences]


def acknowledged(sequence: int, offset: int, *, again: bool = False, epoch: int = 1) -> NumberedAcknowledged:
    return NumberedAcknowledged(2.0, "l", "p", sequence, epoch, offset, again)


def refused(sequence: int, *, epoch: int = 1) -> NumberedRefused:
    return NumberedRefused(3.0, "l", "p", sequence, epoch)


def ended(first: int, *records: bytes) -> list[object]:
    """A log that begins at an offset and holds these records at the end."""
    return [LogRead(9.0, "l", "last", first, records, 10, 1, 0), FinalLogRead(9.0, "l", "last", first, first + len(records))]


def violations(*events: object) -> str:
    history = History()
    for event in events:
        history.add(event)
    return "\n".join(violation for verdict in judge(history, NUMBERING_CHECKERS) for violation in verdict.violations)


def test_records_that_are_there_once_and_in_order_pass() -> None:
    assert not violations(
        *offered(0, 1, 1, 2, 3),
        acknowledged(0, 0),
        acknowledged(1, 2),
        acknowledged(1, 2, again=True),
        acknowledged(1, -1, again=True),
        *ended(0, b"p0", b"other", b"p1", b"p2"),
    )
    assert not violations(*offered(4, 5, 6), acknowledged(4, 7), acknowledged(5, 8), *ended(8, b"p5", b"p6")), "the first is truncated"
    assert not violations(*offered(4, 5), acknowledged(4, -1, again=True), *ended(8, b"p5")), "it may be truncated"
    assert not violations(acknowledged(4, 0, epoch=2), refused(5, epoch=1), refused(6, epoch=2)), "a writer that has lost the log"


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (
            [*offered(0), acknowledged(0, 0), acknowledged(0, 0), *ended(0, b"p0")],
            "p #0 of l, acknowledged at 2.000000, was appended by an",
        ),
        ([*offered(0), acknowledged(0, 0), acknowledged(0, 1, again=True), *ended(0, b"p0")], "at offset 1, was acknowledged at 0 before"),
        ([*offered(0), acknowledged(0, 0), *ended(0)], "#0 of p in l was acknowledged (offset 0) and is not there"),
        ([*offered(0), acknowledged(0, -1, again=True), *ended(0)], "and is not there"),
        ([*offered(0), acknowledged(0, 1), *ended(0, b"p0", b"x")], "#0 of p in l is at 0, and was acknowledged at 1"),
        ([*offered(0, 1), *ended(0, b"p1", b"p0")], "#1 of p in l is at 0, and #0 at 1"),
        ([*offered(0, 1, 2), *ended(0, b"p0", b"p2")], "#2 of p in l is at 1, and #1 before it is not there"),
        ([*offered(0, 1, 2), *ended(5, b"p0", b"p2")], "#1 before it is not there"),
        (
            [acknowledged(4, -1, again=True, epoch=2), refused(5, epoch=2)],
            "#5 of p in l was refused as a gap at 3.000000 in epoch 2, and #4",
        ),
    ],
)
def test_others_do_not(events: list[object], reason: str) -> None:
    assert reason in violations(*events)
