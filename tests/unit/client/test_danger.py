"""How long an ack quorum has been in danger, and how long a bookie that failed is left alone."""

from __future__ import annotations

from triplicate.client.write.failed_bookies import FailedBookie, QuorumLossTimer
from triplicate.errors import BookieError
from triplicate.runtime import Backoff


class Middle:
    """Draws the middle of every step."""

    def random(self) -> float:
        return 1.0


def test_a_danger_that_comes_back_soon_was_never_over() -> None:
    danger = QuorumLossTimer(10.0)
    danger.seen(100.0, 7)
    assert danger.since == 100.0
    danger.seen(105.0, 7)
    danger.seen(114.9, 7)
    assert danger.since == 100.0
    danger.seen(125.0, 7)
    assert danger.since == 125.0


def test_a_danger_that_comes_back_after_something_was_confirmed_is_a_new_one() -> None:
    danger = QuorumLossTimer(10.0)
    danger.seen(100.0, 7)
    danger.seen(105.0, 8)
    danger.seen(106.0, 8)
    assert danger.since == 105.0


def test_a_bookie_is_left_alone_longer_each_time_it_fails_until_that_is_long_ago() -> None:
    absentee = FailedBookie(BookieError("first"), Backoff(1.0, 4.0, Middle()), 4.0, 0.0)  # type: ignore[arg-type]
    assert absentee.until == 1.0
    absentee.is_back = True
    absentee.failed(BookieError("second"), 10.0)
    assert (absentee.until, absentee.is_back, str(absentee.error)) == (12.0, False, "second")
    for _ in range(3):
        absentee.failed(BookieError("again"), 20.0)
    assert absentee.until == 24.0
    assert not absentee.is_forgiven(32.0)
    assert absentee.is_forgiven(32.1)
