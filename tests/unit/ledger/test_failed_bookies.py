"""The timer of a quorum loss, and the backoff of a bookie that failed."""

from __future__ import annotations

from triplicate.errors import BookieError
from triplicate.ledger.failed_bookies import FailedBookie, QuorumLossTimer
from triplicate.runtime import Backoff


class Middle:
    """Draws the middle of every step."""

    def random(self) -> float:
        return 1.0


def test_a_loss_that_comes_back_soon_continues_the_one_before() -> None:
    timer = QuorumLossTimer(10.0)
    timer.note(100.0, 7)
    assert timer.since == 100.0
    timer.note(105.0, 7)
    timer.note(114.9, 7)
    assert timer.since == 100.0
    timer.note(125.0, 7)
    assert timer.since == 125.0


def test_a_loss_after_something_was_confirmed_is_a_new_one() -> None:
    timer = QuorumLossTimer(10.0)
    timer.note(100.0, 7)
    timer.note(105.0, 8)
    timer.note(106.0, 8)
    assert timer.since == 105.0


def test_the_backoff_of_a_bookie_grows_until_its_last_failure_is_long_ago() -> None:
    bookie = FailedBookie(BookieError("first"), Backoff(1.0, 4.0, Middle()), 4.0, 0.0)  # type: ignore[arg-type]
    assert bookie.retry_at == 1.0
    bookie.is_back = True
    bookie.fail(BookieError("second"), 10.0)
    assert (bookie.retry_at, bookie.is_back, str(bookie.error)) == (12.0, False, "second")
    for _ in range(3):
        bookie.fail(BookieError("again"), 20.0)
    assert bookie.retry_at == 24.0
    assert not bookie.has_expired(32.0)
    assert bookie.has_expired(32.1)
