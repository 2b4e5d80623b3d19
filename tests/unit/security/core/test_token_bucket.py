"""The token bucket of handshakes and traces."""

from __future__ import annotations

import pytest

from triplicate.security.core.token_bucket import TokenBucket


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
