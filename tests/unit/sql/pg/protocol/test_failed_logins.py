"""The accounts of failed logins."""

from __future__ import annotations

import pytest

from triplicate.sql.pg.protocol.failed_logins import ADDRESSES_MAX, DELAY_LONGEST_S, FailedLogins, address_key


def test_the_delay_doubles_up_to_its_longest() -> None:
    failures = FailedLogins(0, 1e9)
    delays = [failures.count("192.0.2.1", 0.0) for _ in range(8)]
    assert delays[:5] == [0.1, 0.2, 0.4, 0.8, 1.6]
    assert delays[5:] == [DELAY_LONGEST_S] * 3
    assert failures.wait_s("192.0.2.1", 0.0) == 0


def test_an_address_waits_at_the_maximum_until_a_failure_is_forgiven() -> None:
    failures = FailedLogins(3, 10.0)
    for _ in range(3):
        assert failures.wait_s("192.0.2.1", 100.0) == 0
        failures.count("192.0.2.1", 100.0)
    assert failures.wait_s("192.0.2.1", 100.0) == 10
    assert failures.wait_s("192.0.2.1", 104.0) == pytest.approx(6)
    assert failures.wait_s("192.0.2.1", 110.1) == 0
    assert failures.wait_s("192.0.2.2", 100.0) == 0
    failures.count("192.0.2.1", 110.1)
    assert failures.wait_s("192.0.2.1", 110.1) > 9


def test_failures_at_the_same_time_do_not_lengthen_the_wait() -> None:
    failures = FailedLogins(3, 10.0)
    for _ in range(100):
        failures.count("192.0.2.1", 0.0)
    assert failures.wait_s("192.0.2.1", 0.0) == 10


def test_the_table_is_bounded_and_forgets_the_oldest_failure() -> None:
    failures = FailedLogins(1, 1e9)
    for number in range(ADDRESSES_MAX):
        failures.count(f"a{number}", 0.0)
    failures.count("a0", 1.0)
    failures.count("another", 2.0)
    assert len(failures._accounts) == ADDRESSES_MAX
    assert failures.wait_s("a0", 2.0) > 0
    assert failures.wait_s("a1", 2.0) == 0


def test_the_addresses_of_one_machine_are_one() -> None:
    assert address_key("2001:db8::1") == address_key("2001:db8::ffff:1") == "2001:db8::/64"
    assert address_key("fe80::1%eth0") == "fe80::/64"
    assert address_key("::ffff:192.0.2.1") == address_key("192.0.2.1") == "192.0.2.1"
    assert address_key("a") == "a"
