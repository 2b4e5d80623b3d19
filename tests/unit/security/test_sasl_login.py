"""The login of a client at bookies: one state for each connection, no password in clear, a password that can be changed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from triplicate.config import ClientSettings
from triplicate.errors import ConfigError, Unauthorized
from triplicate.security import MECHANISMS, LoginConnection, SaslLogin

OPEN = LoginConnection("a", is_protected=False)
PROTECTED = LoginConnection("a", is_protected=True)


def settings_of(folder: Path, mechanism: str, password: str = "secret") -> ClientSettings:
    path = folder / "password"
    path.touch(mode=0o600)
    path.write_text(password + "\n")
    return ClientSettings(user="writer", password_file=str(path), mechanism=mechanism)


def test_the_setting_offers_the_mechanisms_that_there_are() -> None:
    field = ClientSettings.__dataclass_fields__["mechanism"]
    assert set(field.metadata["setting"].choices) == set(MECHANISMS)


@pytest.mark.parametrize("mechanism", ["DIGEST-MD5", "SCRAM-SHA-256"])
def test_each_connection_has_a_login_and_a_nonce_of_its_own(tmp_path: Path, mechanism: str) -> None:
    login = SaslLogin(settings_of(tmp_path, mechanism), os.urandom, is_protected=False)
    one, other = login.begin(OPEN), login.begin(OPEN)
    assert one is not other
    challenge = b'nonce="x",algorithm=md5-sess'
    if mechanism == "DIGEST-MD5":
        assert one.answer(challenge) != other.answer(challenge)
    else:
        assert one.first_token() != other.first_token()


def test_plain_never_begins_on_a_connection_without_tls(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "PLAIN")
    with pytest.raises(ConfigError, match="needs TLS"):
        SaslLogin(settings, os.urandom, is_protected=False)
    login = SaslLogin(settings, os.urandom, is_protected=True)
    with pytest.raises(Unauthorized, match="in clear"):
        login.begin(OPEN)
    assert b"secret" in login.begin(PROTECTED).first_token()


def test_channel_binding_needs_a_certificate(tmp_path: Path) -> None:
    login = SaslLogin(settings_of(tmp_path, "SCRAM-SHA-256-PLUS"), os.urandom, is_protected=True)
    with pytest.raises(Unauthorized, match="certificate"):
        login.begin(PROTECTED)


def test_a_changed_password_is_used_by_the_next_connection(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "PLAIN", "before")
    login = SaslLogin(settings, os.urandom, is_protected=True)
    assert b"before" in login.begin(PROTECTED).first_token()
    settings_of(tmp_path, "PLAIN", "after")
    assert b"after" in login.begin(PROTECTED).first_token()
    Path(settings.password_file).unlink()
    with pytest.raises(ConfigError, match=r"client\.password_file: .* cannot be read"):
        login.begin(PROTECTED)


def test_a_login_that_lacks_a_part_is_refused_with_the_setting(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "SCRAM-SHA-256")
    assert SaslLogin.of_settings(ClientSettings(), os.urandom, is_protected=False) is None
    for wrong, told in (
        (replace(settings, user=""), r"client\.user"),
        (replace(settings, password_file=""), r"client\.password_file"),
        (settings_of(tmp_path, "PLAIN", "a\0b"), "NUL"),
    ):
        with pytest.raises(ConfigError, match=told):
            SaslLogin.of_settings(wrong, os.urandom, is_protected=True)
    Path(settings.password_file).chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        SaslLogin.of_settings(settings, os.urandom, is_protected=True)


def test_no_password_is_in_the_text_of_an_object(tmp_path: Path) -> None:
    for mechanism in ("DIGEST-MD5", "SCRAM-SHA-256", "PLAIN"):
        login = SaslLogin(settings_of(tmp_path, mechanism, "s3cret"), os.urandom, is_protected=True)
        assert "s3cret" not in repr(login) + repr(login.begin(PROTECTED)) + repr(PROTECTED)
