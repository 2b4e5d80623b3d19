"""A folder with an authority and the certificates that it issued. Each name has two files; only their owner may read them.

    DIR/ca.pem      certificates of the authorities that are trusted, the one that signs first
    DIR/ca.key      key of the one that signs
    DIR/NAME.pem    a certificate
    DIR/NAME.key    its key

A new authority is introduced in three steps, so that no connection fails: every process trusts both (`add_authority`), every certificate is
renewed (`renew`), and the old authority is no longer trusted (`retire_authorities`).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.errors import ConfigError
from triplicate.security.authority import (
    Authority,
    CertificateAndKey,
    CertificateFacts,
    facts_of,
    is_signed_by,
    key_belongs,
    split_certificates,
)
from triplicate.security.secret_files import make_private_directory, prepare_private, replace_prepared, write_private

DAY_S = 86_400.0
AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 365
AUTHORITY_NAME = "ca"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """One certificate of a folder."""

    name: str
    """Name of its files."""
    facts: CertificateFacts
    problem: str = ""
    """Why no process can use it; empty if one can."""


class CertificateStore:
    """A folder with an authority.

    Raises:
        ConfigError: the folder holds no authority.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        if not os.path.isfile(self.certificate_path(AUTHORITY_NAME)):
            raise ConfigError(f"{folder} holds no authority; make one with `triplicate security init {folder}`")

    @classmethod
    def create(cls, folder: str, common_name: str, now_s: float, days: float = AUTHORITY_DAYS) -> CertificateStore:
        """Make the folder and an authority in it.

        Raises:
            ConfigError: it holds one already, or other files.
        """
        if os.path.exists(os.path.join(folder, f"{AUTHORITY_NAME}.pem")) or os.path.exists(os.path.join(folder, f"{AUTHORITY_NAME}.key")):
            raise ConfigError(f"{folder} holds an authority, which nothing overwrites: name another folder, or renew with `security renew`")
        if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
            raise ConfigError(f"{folder} is not an empty folder; name another one")
        authority = Authority.create(common_name, now_s, days * DAY_S)
        make_private_directory(folder)
        _write_pair(folder, AUTHORITY_NAME, authority.pem)
        return cls(folder)

    def certificate_path(self, name: str) -> str:
        return os.path.join(self.folder, f"{name}.pem")

    def key_path(self, name: str) -> str:
        return os.path.join(self.folder, f"{name}.key")

    def names(self) -> list[str]:
        """Names of the certificates, without the authority, sorted."""
        found = [file.removesuffix(".pem") for file in os.listdir(self.folder) if file.endswith(".pem")]
        return sorted(name for name in found if name != AUTHORITY_NAME)

    def authorities(self) -> list[CertificateFacts]:
        """The trusted authorities, the one that signs first."""
        return [facts_of(each) for each in self._bundle()]

    def certificate(self, name: str, now_s: float) -> StoredCertificate:
        """One certificate, and the reason if no process can use it.

        Raises:
            ConfigError: there is none of this name, or it cannot be decoded.
        """
        pem = self._read(self.certificate_path(name), f"{self.folder} holds no certificate {name}; it has {self._named()}")
        facts = facts_of(pem)
        return StoredCertificate(name, facts, self._problem(name, pem, facts, now_s))

    def issue(
        self, name: str, hosts: Sequence[str], now_s: float, *, days: float = CERTIFICATE_DAYS, units: Sequence[str] = ()
    ) -> StoredCertificate:
        """Make a certificate and its key.

        Args:
            hosts: names and addresses of a server; none for a client.
            units: organisational units, such as roles.

        Raises:
            ConfigError: the name cannot be a file's or is taken, or the authority cannot sign.
        """
        check_certificate_name(name)
        if os.path.exists(self.certificate_path(name)) or os.path.exists(self.key_path(name)):
            raise ConfigError(f"{self.folder} holds a certificate {name}, which `issue` does not overwrite; renew it, or take another name")
        _write_pair(self.folder, name, self._signing(now_s).issue(name, hosts, now_s, days * DAY_S, units))
        return self.certificate(name, now_s)

    def renew(self, name: str, now_s: float, *, days: float = CERTIFICATE_DAYS) -> StoredCertificate:
        """Replace a certificate by one with the same names and units and a new key. Processes that have it open use it at their next check.

        Raises:
            ConfigError: there is none of this name, or the authority cannot sign.
        """
        old = self.certificate(name, now_s).facts
        _write_pair(self.folder, name, self._signing(now_s).issue(old.common_name, old.hosts, now_s, days * DAY_S, old.units))
        return self.certificate(name, now_s)

    def add_authority(self, common_name: str, now_s: float, days: float = AUTHORITY_DAYS) -> CertificateFacts:
        """Make a new authority, which signs from now on. The ones before stay trusted.

        Raises:
            ConfigError: the folder holds no authority that can be read.
        """
        new = Authority.create(common_name, now_s, days * DAY_S).pem
        bundle = b"".join((new.certificate_pem, *self._bundle()))
        _write_pair(self.folder, AUTHORITY_NAME, CertificateAndKey(bundle, new.key_pem))
        return facts_of(new.certificate_pem)

    def retire_authorities(self) -> list[CertificateFacts]:
        """Let only the authority that signs be trusted. Returns the retired ones.

        Raises:
            ConfigError: a certificate of the folder was signed by a retired one, and would not be accepted any longer.
        """
        kept, *retired = self._bundle()
        left = [name for name in self.names() if not is_signed_by(self._read(self.certificate_path(name), ""), kept)]
        if left:
            raise ConfigError(f"{', '.join(left)} of {self.folder} are signed by an older authority: run `security renew --all` first")
        if retired:
            write_private(self.certificate_path(AUTHORITY_NAME), kept)
        return [facts_of(each) for each in retired]

    def _bundle(self) -> tuple[bytes, ...]:
        return split_certificates(self._read(self.certificate_path(AUTHORITY_NAME), f"{self.folder} holds no authority"))

    def _signing(self, now_s: float) -> Authority:
        key = self._read(
            self.key_path(AUTHORITY_NAME),
            f"{self.folder} has no ca.key, and without it nothing can be signed; fetch it from its safe place",
        )
        authority = Authority.load(self._bundle()[0], key)
        if facts_of(authority.pem.certificate_pem).expires_s <= now_s:
            raise ConfigError(f"the authority of {self.folder} has expired; make a new one with `triplicate security new-authority`")
        return authority

    def _problem(self, name: str, pem: bytes, facts: CertificateFacts, now_s: float) -> str:
        try:
            with open(self.key_path(name), "rb") as stream:
                key = stream.read()
        except OSError as error:
            return f"its key cannot be read: {error.strerror}"
        try:
            if not key_belongs(pem, key):
                return "its key belongs to another certificate; renew it"
        except ConfigError as error:
            return f"its key cannot be read: {error}"
        if facts.expires_s <= now_s:
            return "expired; renew it"
        if not any(is_signed_by(pem, each) for each in self._bundle()):
            return f"signed by {facts.issuer}, which is not trusted here; renew it"
        return ""

    def _named(self) -> str:
        return ", ".join(self.names()) or "none"

    @staticmethod
    def _read(path: str, missing: str) -> bytes:
        try:
            with open(path, "rb") as stream:
                return stream.read()
        except FileNotFoundError:
            raise ConfigError(missing or f"{path} is missing") from None
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def check_certificate_name(name: str) -> None:
    """Raises ConfigError: the name cannot be that of a certificate's files."""
    if not _NAME.fullmatch(name) or name == AUTHORITY_NAME:
        raise ConfigError(
            f"{name!r} cannot name a certificate: use 1 to 64 letters, digits, points, hyphens and underscores, not beginning with a "
            f"point or hyphen, and not {AUTHORITY_NAME!r}"
        )


def _write_pair(folder: str, name: str, issued: CertificateAndKey) -> None:
    """Replace both files. Both are on the disk before the first is replaced, so that they differ for as short as possible.

    A process that reads them in between keeps its former certificate and reads them again. After a crash in between, `renew` repairs them.
    """
    pairs = [(os.path.join(folder, f"{name}.key"), issued.key_pem), (os.path.join(folder, f"{name}.pem"), issued.certificate_pem)]
    try:
        for path, content in pairs:
            prepare_private(path, content)
    except BaseException:
        for path, _ in pairs:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path + ".new")
        raise
    for path, _ in pairs:
        replace_prepared(path)
