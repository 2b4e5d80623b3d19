"""How long a peer may be silent that has answered late before."""

from __future__ import annotations

from triplicate.replica.core.silence import DELAY_FACTOR, DELAY_LIMITS_MAX, DELAY_WINDOW_S, AnswerDelays

LIMIT_S = 1.0


def test_a_peer_that_answers_at_once_has_the_usual_limit() -> None:
    delays = AnswerDelays()
    for number in range(100):
        delays.answered(number * 0.2, 0.02)
    assert delays.limit_s(20.0, LIMIT_S) == LIMIT_S


def test_a_late_answer_lengthens_the_limit_within_bounds_and_for_a_while() -> None:
    delays = AnswerDelays()
    delays.answered(0.0, 0.5)
    assert delays.limit_s(0.0, LIMIT_S) == DELAY_FACTOR * 0.5
    delays.answered(1.0, 30.0)
    assert delays.limit_s(1.0, LIMIT_S) == DELAY_LIMITS_MAX * LIMIT_S
    assert delays.limit_s(DELAY_WINDOW_S + 1.0, LIMIT_S) == DELAY_LIMITS_MAX * LIMIT_S
    assert delays.limit_s(2 * DELAY_WINDOW_S + 2.0, LIMIT_S) == LIMIT_S


def test_a_delay_of_long_ago_is_forgotten_at_once() -> None:
    delays = AnswerDelays()
    delays.answered(0.0, 0.5)
    assert delays.limit_s(10 * DELAY_WINDOW_S, LIMIT_S) == LIMIT_S
