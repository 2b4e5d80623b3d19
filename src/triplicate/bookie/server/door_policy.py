"""The demands of a bookie on its clients, by its settings.

Settings that contradict each other, or that would leave the bookie half secure, are refused at the start.
"""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.config import BookieSettings, SecuritySettings
from triplicate.errors import ConfigError
from triplicate.security import MECHANISMS, PLAIN, SCRAM_PLUS, ClientCertificates

NEED_TLS = frozenset([PLAIN, SCRAM_PLUS])
"""Mechanisms that are offered only inside TLS. PLAIN would show the password to everybody on the way."""


@dataclass(frozen=True, slots=True)
class DoorPolicy:
    """See the module's text."""

    offers_tls: bool
    requires_tls: bool
    certificates: ClientCertificates
    by_sasl: bool
    """Whether a user with a password is admitted."""
    by_certificate: bool
    """Whether a client certificate with roles is admitted."""
    mechanisms: tuple[str, ...]
    authorized_roles: tuple[str, ...]

    @classmethod
    def of(cls, settings: BookieSettings, security: SecuritySettings) -> DoorPolicy:
        """Raises ConfigError: the settings contradict each other. The message names the setting."""
        _check(settings, security)
        authentication = settings.authentication
        return cls(
            offers_tls=settings.tls != "off",
            requires_tls=settings.tls == "required",
            certificates=ClientCertificates(settings.client_certificates),
            by_sasl=authentication in ("sasl", "either"),
            by_certificate=authentication in ("certificate", "either"),
            mechanisms=tuple(settings.mechanisms),
            authorized_roles=tuple(settings.authorized_roles),
        )

    @property
    def authenticates(self) -> bool:
        """Whether a connection must prove who it is."""
        return self.by_sasl or self.by_certificate

    @property
    def is_guarded(self) -> bool:
        """Whether a new connection may do nothing."""
        return self.requires_tls or self.authenticates

    @property
    def is_open(self) -> bool:
        """Whether a new connection may do everything at once, and has no other choice."""
        return not self.offers_tls and not self.authenticates

    def offered(self, *, has_tls: bool) -> tuple[str, ...]:
        """The mechanisms for a connection with or without TLS."""
        return tuple(each for each in self.mechanisms if has_tls or each not in NEED_TLS)

    @property
    def summary(self) -> str:
        """One line for operators."""
        tls = "TLS required" if self.requires_tls else "TLS offered" if self.offers_tls else "no TLS"
        certificates = {
            ClientCertificates.NONE: "",
            ClientCertificates.REQUESTED: ", client certificates requested",
            ClientCertificates.REQUIRED: ", client certificates required",
        }[self.certificates]
        ways = [way for way, is_on in (("certificates", self.by_certificate), ("users", self.by_sasl)) if is_on]
        return f"{tls}{certificates}, " + (f"authentication by {' or '.join(ways)}" if ways else "no authentication")


def _check(settings: BookieSettings, security: SecuritySettings) -> None:
    has_tls = settings.tls != "off"
    by_sasl, by_certificate = settings.authentication in ("sasl", "either"), settings.authentication in ("certificate", "either")
    if has_tls:
        for name in ("ca_file", "certificate_file", "key_file"):
            if not getattr(security, name):
                raise ConfigError(f"bookie.tls = {settings.tls} needs security.{name}, which is not set")
    if settings.client_certificates != "none" and not has_tls:
        raise ConfigError(f"bookie.client_certificates = {settings.client_certificates} needs bookie.tls, which is off")
    if by_certificate and settings.client_certificates == "none":
        raise ConfigError(f"bookie.authentication = {settings.authentication} needs bookie.client_certificates, which is none")
    if settings.authorized_roles and not by_certificate:
        raise ConfigError("bookie.authorized_roles is set, but bookie.authentication asks for no certificate")
    if by_sasl and not settings.users_file:
        raise ConfigError(f"bookie.authentication = {settings.authentication} needs bookie.users_file, which is not set")
    if settings.users_file and not by_sasl:
        raise ConfigError(f"bookie.users_file is set, but bookie.authentication = {settings.authentication} asks for no user")
    unknown = [each for each in settings.mechanisms if each not in MECHANISMS]
    if unknown:
        raise ConfigError(f"bookie.mechanisms: there is no {unknown[0]}; the mechanisms are {', '.join(MECHANISMS)}")
    if by_sasl and not any(has_tls or each not in NEED_TLS for each in settings.mechanisms):
        raise ConfigError("bookie.mechanisms: none of them may be used without bookie.tls, so nobody could log in")
