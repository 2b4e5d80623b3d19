"""How the connections of one client are protected, and by what it proves itself to bookies."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.client.connection.authentication import Authenticator, Begin, ConnectionAuthenticator, begin_of
from triplicate.config import ClientSettings, SecuritySettings
from triplicate.errors import ArgumentError, ConfigError
from triplicate.runtime import Host
from triplicate.security import SaslLogin, TlsIdentity


@dataclass(frozen=True, slots=True)
class BookieAccess:
    """See the module's text.

    Attributes:
        tls: None: connections are in clear.
        begin: makes the authenticator of a new connection; None for no authentication.
        requires_login: whether bookies without authentication are refused.
    """

    tls: TlsIdentity | None = None
    begin: Begin | None = None
    requires_login: bool = False

    @property
    def has_handshake(self) -> bool:
        """Whether anything happens on a connection before its first request."""
        return self.tls is not None or self.begin is not None

    @classmethod
    def open(
        cls,
        host: Host,
        settings: ClientSettings,
        security: SecuritySettings | None,
        authenticate: Authenticator | ConnectionAuthenticator | None,
    ) -> BookieAccess:
        """The access that settings describe.

        Args:
            authenticate: a plugin of the user, in place of `client.user`.

        Raises:
            ConfigError: a setting lacks what it needs, or a file of it cannot be used. ArgumentError: there are two authenticators.
        """
        tls = None
        if settings.bookie_tls == "required":
            tls = TlsIdentity.open(security, host.clock, host.trace) if security is not None else None
            if tls is None:
                raise ConfigError("client.bookie_tls is required, which needs security.ca_file: the authority of the bookies' certificates")
        login = SaslLogin.of_settings(settings, host.entropy.secret, is_protected=tls is not None)
        if login is not None and authenticate is not None:
            raise ArgumentError("client.user and `authenticate` both authenticate the client; use one of them")
        begin, requires_login = begin_of(login if login is not None else authenticate), settings.bookie_login == "required"
        if requires_login and begin is None:
            raise ConfigError("client.bookie_login is required, which needs client.user and its password")
        return cls(tls, begin, requires_login)


IN_CLEAR = BookieAccess()
"""Connections in clear, without authentication."""
