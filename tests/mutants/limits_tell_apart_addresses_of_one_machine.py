"""Each address of IPv6 has limits of its own, though one machine has 2^64 of them."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/security/core/test_half_open.py::test_addresses_of_one_network_of_ipv6_count_as_one",
    "tests/unit/security/core/test_failed_logins.py::test_the_addresses_of_one_network_of_ipv6_have_one_account",
]


def apply(patch: Any) -> None:
    from triplicate.security.core import failed_logins, half_open

    for module in (failed_logins, half_open):
        patch(module, "address_key", lambda address: address)
