"""Certificates for tests: one authority, certificates of it, and settings that name their files."""

from __future__ import annotations

import ssl
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from triplicate.config import SecuritySettings
from triplicate.security import Authority, CertificateAndKey

DAY_S = 86_400.0
LOCAL = ("localhost", "127.0.0.1", "::1")


class CertificateFolder:
    """A folder with an authority; each certificate is a pair of files in it."""

    def __init__(self, folder: Path, name: str = "an authority for tests", valid_s: float = 10 * DAY_S) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.authority = Authority.create(name, time.time(), valid_s)
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(self.authority.pem.certificate_pem)

    def settings(
        self, name: str, hosts: Sequence[str] = LOCAL, *, valid_s: float = DAY_S, made_s_ago: float = 0.0, units: Sequence[str] = ()
    ) -> SecuritySettings:
        """Settings with a new certificate. One that was made long ago for a short time is expired."""
        self.write(name, self.authority.issue(name, hosts, time.time() - made_s_ago, valid_s, units))
        return SecuritySettings(
            ca_file=str(self.ca_file), certificate_file=str(self.folder / f"{name}.pem"), key_file=str(self.folder / f"{name}.key")
        )

    def client_settings(self) -> SecuritySettings:
        """Settings that trust the authority and have no certificate."""
        return SecuritySettings(ca_file=str(self.ca_file))

    def trusting(self, settings: SecuritySettings) -> SecuritySettings:
        """The same certificate, perhaps another authority's, that trusts this folder's authority."""
        return replace(settings, ca_file=str(self.ca_file))

    def write(self, name: str, issued: CertificateAndKey) -> None:
        (self.folder / f"{name}.pem").write_bytes(issued.certificate_pem)
        key = self.folder / f"{name}.key"
        key.unlink(missing_ok=True)
        key.touch(mode=0o600)
        key.write_bytes(issued.key_pem)


def context_of_old_tls() -> ssl.SSLContext:
    """The context of a client that speaks TLS 1.1 at most, and verifies nothing."""
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname = False
    old.verify_mode = ssl.CERT_NONE
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        # Else the least version of the system, which is higher, would end the handshake before the server sees anything.
        old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    return old
