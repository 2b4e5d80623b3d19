"""Where the pages of a process may be served, and what they need for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triplicate.config import ProcessSettings, SecuritySettings
from triplicate.security.core.page_protection import is_loopback, page_gaps

SECURE = SecuritySettings(ca_file="ca.pem", certificate_file="a.pem", key_file="a.key")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.8.7", "::1", "localhost"])
def test_addresses_of_this_machine_need_nothing(address: str) -> None:
    assert is_loopback(address)
    assert list(page_gaps(ProcessSettings(metrics_host=address), SecuritySettings())) == []


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "bookie1.example", "", "127.0.0.1.example"])
def test_any_other_address_needs_tls_and_a_token(address: str) -> None:
    assert not is_loopback(address)
    process = ProcessSettings(metrics_host=address)
    assert [gap.split()[0] for gap in page_gaps(process, SECURE)] == ["process.metrics_tls", "process.metrics_token_file"]
    with_tls, with_token = replace(process, metrics_tls=True), replace(process, metrics_token_file="token")
    assert [gap.split()[0] for gap in page_gaps(with_tls, SECURE)] == ["process.metrics_token_file"]
    assert [gap.split()[0] for gap in page_gaps(with_token, SECURE)] == ["process.metrics_tls"]
    assert list(page_gaps(replace(with_tls, metrics_token_file="token"), SECURE)) == []


@pytest.mark.parametrize("less", [replace(SECURE, ca_file=""), replace(SECURE, certificate_file=""), replace(SECURE, key_file="")])
def test_tls_needs_a_certificate_on_loopback_too(less: SecuritySettings) -> None:
    (gap,) = page_gaps(ProcessSettings(metrics_tls=True), less)
    assert "security.ca_file, security.certificate_file and security.key_file" in gap
