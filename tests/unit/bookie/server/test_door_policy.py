"""Settings of the door that contradict each other, or would leave it half secure, stop a start. The message names the setting."""

from __future__ import annotations

from typing import Any

import pytest

from triplicate.bookie.server.door_policy import DoorPolicy
from triplicate.config import BookieSettings, SecuritySettings
from triplicate.errors import ConfigError

IDENTITY = SecuritySettings(ca_file="ca", certificate_file="certificate", key_file="key")


def policy(security: SecuritySettings = IDENTITY, **settings: Any) -> DoorPolicy:
    return DoorPolicy.of(BookieSettings(**settings), security)


def test_by_default_the_door_is_open() -> None:
    assert policy(SecuritySettings()).is_open
    assert not policy(SecuritySettings()).is_guarded


@pytest.mark.parametrize(
    ("settings", "is_guarded", "authenticates"),
    [
        ({"tls": "offered"}, False, False),
        ({"tls": "required"}, True, False),
        ({"authentication": "sasl", "users_file": "u"}, True, True),
        ({"tls": "offered", "client_certificates": "requested", "authentication": "certificate"}, True, True),
    ],
)
def test_a_guarded_door_admits_nobody_at_once(settings: dict[str, Any], is_guarded: bool, authenticates: bool) -> None:
    found = policy(**settings)
    assert not found.is_open
    assert (found.is_guarded, found.authenticates) == (is_guarded, authenticates)


@pytest.mark.parametrize(
    ("settings", "security", "named"),
    [
        ({"tls": "required"}, SecuritySettings(), r"security\.ca_file"),
        ({"tls": "offered"}, SecuritySettings(ca_file="ca"), r"security\.certificate_file"),
        ({"tls": "offered"}, SecuritySettings(ca_file="ca", certificate_file="c"), r"security\.key_file"),
        ({"client_certificates": "required"}, IDENTITY, r"bookie\.tls, which is off"),
        ({"tls": "required", "authentication": "certificate"}, IDENTITY, r"bookie\.client_certificates, which is none"),
        ({"tls": "required", "authentication": "either", "users_file": "u"}, IDENTITY, r"bookie\.client_certificates"),
        ({"authentication": "sasl"}, IDENTITY, r"bookie\.users_file, which is not set"),
        ({"users_file": "u"}, IDENTITY, r"bookie\.users_file is set, but bookie\.authentication = none"),
        ({"authorized_roles": ("operators",)}, IDENTITY, r"bookie\.authorized_roles is set"),
        ({"mechanisms": ("SCRAM-SHA-1",)}, IDENTITY, r"bookie\.mechanisms: there is no SCRAM-SHA-1"),
        (
            {"authentication": "sasl", "users_file": "u", "mechanisms": ("PLAIN", "SCRAM-SHA-256-PLUS")},
            IDENTITY,
            r"bookie\.mechanisms: none of them may be used without bookie\.tls",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_contradiction_is_refused(settings: dict[str, Any], security: SecuritySettings, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        policy(security, **settings)


def test_plain_and_channel_binding_are_offered_inside_tls_only() -> None:
    found = policy(tls="offered", authentication="sasl", users_file="u")
    assert found.offered(has_tls=False) == ("SCRAM-SHA-256", "DIGEST-MD5")
    assert found.offered(has_tls=True) == ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "DIGEST-MD5", "PLAIN")


def test_the_summary_names_all_that_is_on() -> None:
    found = policy(tls="required", client_certificates="requested", authentication="either", users_file="u")
    assert found.summary == "TLS required, client certificates requested, authentication by certificates or users"
    assert policy(SecuritySettings()).summary == "no TLS, no authentication"
