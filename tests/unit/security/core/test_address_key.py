"""The key of an address in tables of limits."""

from __future__ import annotations

from triplicate.security import address_key


def test_the_addresses_of_one_machine_are_one() -> None:
    assert address_key("2001:db8::1") == address_key("2001:db8::ffff:1") == "2001:db8::/64"
    assert address_key("fe80::1%eth0") == "fe80::/64"
    assert address_key("::ffff:192.0.2.1") == address_key("192.0.2.1") == "192.0.2.1"
    assert address_key("a") == "a"


def test_the_addresses_of_two_networks_are_two() -> None:
    assert address_key("2001:db8:0:1::1") != address_key("2001:db8::1")
    assert address_key("192.0.2.1") != address_key("192.0.2.2")
