"""The certificate authority."""

from __future__ import annotations

import pytest

from triplicate.errors import ConfigError
from triplicate.security import Authority, facts_of

NOW_S = 1_800_000_000.0
DAY_S = 86_400.0


def test_a_certificate_states_name_units_hosts_and_end() -> None:
    issued = Authority.create("authority", NOW_S, 10 * DAY_S).issue(
        "bookie-1", ("bookie-1.example", "10.0.0.7", "::1"), NOW_S, DAY_S, ("a", "b")
    )
    facts = facts_of(issued.certificate_pem)
    assert (facts.common_name, facts.units, facts.hosts) == ("bookie-1", ("a", "b"), ("bookie-1.example", "10.0.0.7", "::1"))
    assert facts.expires_s == NOW_S + DAY_S
    assert not facts.is_authority


def test_a_certificate_ends_with_its_authority() -> None:
    issued = Authority.create("authority", NOW_S, DAY_S).issue("server", ("localhost",), NOW_S, 10 * DAY_S)
    assert facts_of(issued.certificate_pem).expires_s == NOW_S + DAY_S


def test_an_authority_is_loaded_from_its_files_only() -> None:
    authority = Authority.create("authority", NOW_S, 10 * DAY_S)
    pem = authority.pem
    assert Authority.load(pem.certificate_pem, pem.key_pem).pem.certificate_pem == pem.certificate_pem
    assert facts_of(pem.certificate_pem).is_authority
    issued = authority.issue("server", ("localhost",), NOW_S, DAY_S)
    with pytest.raises(ConfigError, match="not one of an authority"):
        Authority.load(issued.certificate_pem, issued.key_pem)
    with pytest.raises(ConfigError, match="does not belong"):
        Authority.load(pem.certificate_pem, issued.key_pem)
    with pytest.raises(ConfigError, match="no PEM certificate"):
        Authority.load(b"text", pem.key_pem)


def test_the_repr_of_a_certificate_shows_no_key() -> None:
    pem = Authority.create("authority", NOW_S, DAY_S).pem
    assert "PRIVATE" not in repr(pem)


def test_a_name_that_no_certificate_can_have_is_refused() -> None:
    authority = Authority.create("authority", NOW_S, DAY_S)
    with pytest.raises(ConfigError, match="cannot be the name"):
        authority.issue("", (), NOW_S, DAY_S)
    with pytest.raises(ConfigError, match="cannot be a host"):
        authority.issue("server", ("naïve.example",), NOW_S, DAY_S)
