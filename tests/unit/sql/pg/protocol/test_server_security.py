"""A server does not start if its settings demand security and it lacks a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import CertificateFolder
from triplicate.config import NodeSettings, SecuritySettings
from triplicate.errors import ConfigError
from triplicate.runtime import Clock
from triplicate.security import TlsIdentity
from triplicate.sql.pg import ServerSecurity


class StillClock(Clock):
    def monotonic(self) -> float:
        return 0.0

    def elapsed(self) -> float:
        return 0.0

    def wall_us(self) -> int:
        return 0

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> Any:
        raise AssertionError("nothing is timed")


def security(identity: SecuritySettings | None = None, **settings: Any) -> ServerSecurity:
    opened = None if identity is None else TlsIdentity.open(identity, StillClock(), lambda kind, /, **facts: None)
    return ServerSecurity.of_settings(replace(NodeSettings(), **settings), opened, b"secret")


@pytest.mark.parametrize("tls", ["offered", "required"])
def test_tls_needs_a_certificate(tmp_path: Path, tls: str) -> None:
    with pytest.raises(ConfigError, match=rf"node\.tls is {tls}, but security\.ca_file"):
        security(tls=tls)
    folder = CertificateFolder(tmp_path)
    with pytest.raises(ConfigError, match="certificate_file"):
        security(folder.client_settings(), tls=tls)
    security(folder.settings("node"), tls=tls)


@pytest.mark.parametrize("rule", ["required", "role"])
def test_certificates_cannot_be_demanded_of_clients_that_may_come_without_tls(tmp_path: Path, rule: str) -> None:
    own = CertificateFolder(tmp_path).settings("node")
    for tls in ("off", "offered"):
        with pytest.raises(ConfigError, match=r"set node\.tls to required"):
            security(own, tls=tls, client_certificates=rule)
    found = security(own, tls="required", client_certificates=rule, authentication="scram")
    assert found.certificate_names_role == (rule == "role")


def test_the_role_in_a_certificate_is_not_demanded_of_clients_that_prove_none(tmp_path: Path) -> None:
    own = CertificateFolder(tmp_path).settings("node")
    with pytest.raises(ConfigError, match="set it to scram"):
        security(own, tls="required", client_certificates="role")


def test_certificates_are_not_requested_without_tls(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"node\.tls is off"):
        security(client_certificates="requested")


def test_the_secret_is_not_shown() -> None:
    assert "secret" not in repr(security())
