"""The accounts of failed logins."""

from __future__ import annotations

import pytest

from triplicate.security import FailedLogins, doubling_delay_s
from triplicate.security.core.failed_logins import ADDRESSES_MAX


def test_the_delay_doubles_up_to_its_longest() -> None:
    assert [doubling_delay_s(failures, 0.1, 3.0) for failures in range(8)] == [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]
    assert 0.05 < doubling_delay_s(0.5, 0.1, 3.0) < 0.1
    assert doubling_delay_s(1e9, 0.1, 3.0) == 3.0


def test_failures_are_forgiven_one_by_one() -> None:
    failed = FailedLogins(60.0)
    assert [failed.count("192.0.2.1", 0.0) for _ in range(3)] == [1.0, 2.0, 3.0]
    assert failed.failures("192.0.2.1", 60.0) == pytest.approx(2.0)
    assert failed.failures("192.0.2.1", 180.0) == failed.failures("192.0.2.2", 0.0) == 0.0
    assert failed.count("192.0.2.1", 90.0) == pytest.approx(2.5)


def test_an_account_without_a_maximum_never_has_to_wait() -> None:
    failed = FailedLogins(1e9)
    for _ in range(5000):
        failed.count("192.0.2.1", 0.0)
    assert failed.failures("192.0.2.1", 0.0) == 5000
    assert failed.wait_s("192.0.2.1", 0.0) == 0


def test_an_address_waits_at_the_maximum_until_a_failure_is_forgiven() -> None:
    failed = FailedLogins(10.0, 3)
    for _ in range(3):
        assert failed.wait_s("192.0.2.1", 100.0) == 0
        failed.count("192.0.2.1", 100.0)
    assert failed.wait_s("192.0.2.1", 100.0) == 10
    assert failed.wait_s("192.0.2.1", 104.0) == pytest.approx(6)
    assert failed.wait_s("192.0.2.1", 110.1) == 0
    assert failed.wait_s("192.0.2.2", 100.0) == 0
    failed.count("192.0.2.1", 110.1)
    assert failed.wait_s("192.0.2.1", 110.1) > 9


def test_failures_at_the_same_time_do_not_lengthen_the_wait() -> None:
    failed = FailedLogins(10.0, 3)
    for _ in range(100):
        failed.count("192.0.2.1", 0.0)
    assert failed.wait_s("192.0.2.1", 0.0) == 10


def test_the_addresses_of_one_network_of_ipv6_have_one_account() -> None:
    failed = FailedLogins(10.0, 2)
    failed.count("2001:db8::1", 0.0)
    failed.count("2001:db8::2", 0.0)
    assert failed.wait_s("2001:db8::3", 0.0) == 10
    assert failed.wait_s("2001:db8:0:1::1", 0.0) == 0


def test_the_table_is_bounded_and_forgets_the_oldest_failure() -> None:
    failed = FailedLogins(1e9, 1)
    for number in range(ADDRESSES_MAX):
        failed.count(f"a{number}", 0.0)
    failed.count("a0", 1.0)
    failed.count("another", 2.0)
    assert len(failed) == ADDRESSES_MAX
    assert failed.wait_s("a0", 2.0) > 0
    assert failed.wait_s("a1", 2.0) == 0
