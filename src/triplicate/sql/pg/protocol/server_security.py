"""The demands of a server on its clients, and the errors with which it refuses them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import ConfigError, SqlError
from triplicate.security import ClientCertificates, TlsIdentity


class TlsMode(Enum):
    OFF = "off"
    OFFERED = "offered"
    """Clients decide."""
    REQUIRED = "required"


class AuthenticationMode(Enum):
    TRUST = "trust"
    """Every client is who it says it is, and may do everything."""
    SCRAM = "scram"


class RefusalReason(Enum):
    """Why a client was refused before or at its login: the label of the metric, and the reason in the audit log."""

    PLAIN_TEXT = "plain_text"
    TLS = "tls"
    CERTIFICATE = "certificate"
    PROTOCOL = "protocol"
    PASSWORD = "password"
    EXPIRED = "expired"
    RIGHTS = "rights"
    ATTEMPTS = "attempts"
    CONNECTIONS = "connections"
    TIME = "time"
    HALF_OPEN = "half_open"
    HANDSHAKES = "handshakes"
    OTHER = "other"


class ClientRefused(SqlError):
    """A client is refused.

    Args:
        logged: the cause for the audit log, where the client learns less.
    """

    def __init__(self, reason: RefusalReason, sqlstate: str, message: str, *, hint: str | None = None, logged: str = "") -> None:
        super().__init__(sqlstate, message, hint=hint)
        self.reason = reason
        self.logged = logged or message


@dataclass(frozen=True, slots=True)
class ServerSecurity:
    """The demands of a server. Without arguments it demands nothing.

    Raises (on creation):
        ConfigError: it lacks what it needs, or a demand could be evaded.
    """

    tls: TlsMode = TlsMode.OFF
    identity: TlsIdentity | None = None
    authentication: AuthenticationMode = AuthenticationMode.TRUST
    certificates: ClientCertificates = ClientCertificates.NONE
    certificate_names_role: bool = False
    """Whether the common name of a client's certificate must be the role's name."""
    secret: bytes = field(default=b"", repr=False)
    """Of the cluster; the verifiers of roles that do not exist are derived from it, so that they are the same on every node."""

    def __post_init__(self) -> None:
        if self.tls is not TlsMode.OFF:
            if self.identity is None:
                raise ConfigError(f"node.tls is {self.tls.value}, but security.ca_file, certificate_file and key_file are not set")
            self.identity.server_context(self.certificates)  # A server that cannot serve TLS does not start.
        if self.certificates is ClientCertificates.REQUIRED and self.tls is not TlsMode.REQUIRED:
            raise ConfigError("node.client_certificates demands certificates, which a client without TLS has not: set node.tls to required")
        if self.certificates is ClientCertificates.REQUESTED and self.tls is TlsMode.OFF:
            raise ConfigError("node.client_certificates is requested, but node.tls is off")

        if self.certificate_names_role and self.authentication is AuthenticationMode.TRUST:
            raise ConfigError("node.client_certificates is role, and node.authentication = trust checks no role: set it to scram")

    @classmethod
    def of_settings(cls, settings: NodeSettings, identity: TlsIdentity | None, secret: bytes) -> ServerSecurity:
        """Raises ConfigError as the class."""
        names_role = settings.client_certificates == "role"
        certificates = ClientCertificates.REQUIRED if names_role else ClientCertificates(settings.client_certificates)
        tls, authentication = TlsMode(settings.tls), AuthenticationMode(settings.authentication)
        return cls(tls, identity, authentication, certificates, names_role, secret)
