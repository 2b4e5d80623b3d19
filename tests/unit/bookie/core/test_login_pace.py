"""Delays after failed logins, and the token bucket of handshakes."""

from __future__ import annotations

import pytest

from triplicate.bookie.core import login_pace
from triplicate.bookie.core.login_pace import FailedLogins, TokenBucket


def test_the_delay_doubles_up_to_its_limit() -> None:
    failed = FailedLogins(delay_max_s=1.0)
    delays = []
    for _ in range(8):
        delays.append(failed.delay_s("a", 100.0))
        failed.count("a", 100.0)
    assert delays == [0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert failed.delay_s("b", 100.0) == 0.0


def test_failures_are_forgiven_one_by_one() -> None:
    failed = FailedLogins()
    for _ in range(3):
        failed.count("a", 0.0)
    assert failed.delay_s("a", 0.0) == pytest.approx(0.2)
    assert failed.delay_s("a", login_pace.FORGIVEN_S) == pytest.approx(0.1)
    assert failed.delay_s("a", 3 * login_pace.FORGIVEN_S) == 0.0


def test_a_great_number_of_failures_is_no_overflow() -> None:
    failed = FailedLogins()
    for _ in range(5000):
        failed.count("a", 0.0)
    assert failed.delay_s("a", 0.0) == login_pace.DELAY_MAX_S


def test_the_number_of_addresses_is_limited_and_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_pace, "ADDRESSES_MAX", 3)
    failed = FailedLogins()
    for address in ("a", "b", "a", "c", "d"):
        failed.count(address, 0.0)
    assert len(failed) == 3
    assert failed.delay_s("b", 0.0) == 0.0
    assert failed.delay_s("a", 0.0) > 0.0


def test_tokens_come_at_their_rate_and_those_who_wait_are_served_in_order() -> None:
    bucket = TokenBucket(10, 0.0)
    assert [bucket.wait_s(0.0) for _ in range(10)] == [0.0] * 10
    assert [bucket.wait_s(0.0) for _ in range(3)] == pytest.approx([0.1, 0.2, 0.3])
    assert bucket.wait_s(0.5) == 0.0
    # Not more than one second's tokens are saved.
    assert sum(bucket.wait_s(100.0) == 0.0 for _ in range(20)) == 10


def test_a_token_that_is_given_back_is_there_for_the_next() -> None:
    bucket = TokenBucket(1, 0.0)
    assert bucket.wait_s(0.0) == 0.0
    assert bucket.wait_s(0.0) == 1.0
    bucket.give_back()
    assert bucket.wait_s(0.0) == 1.0
