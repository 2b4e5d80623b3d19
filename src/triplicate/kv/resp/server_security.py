"""The demands of the server on its clients, and why it refuses them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from enum import Enum

from triplicate.errors import ConfigError
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.security import ClientCertificates, TlsIdentity, UsersFile


class RefusalReason(Enum):
    """Why a client was refused before or at its login: the label of the metric, and the reason in the audit log."""

    PLAIN_TEXT = "plain_text"
    TLS = "tls"
    CERTIFICATE = "certificate"
    PROTOCOL = "protocol"
    PASSWORD = "password"
    STORE = "store"
    ATTEMPTS = "attempts"
    CONNECTIONS = "connections"
    TIME = "time"
    HALF_OPEN = "half_open"


class LoginRefused(CommandError):
    """A login is refused.

    Args:
        logged: the cause for the audit log, where the client learns less.
    """

    def __init__(self, reason: RefusalReason, text: str, logged: str = "") -> None:
        super().__init__(text)
        self.reason = reason
        self.logged = logged or text


@dataclass(frozen=True, slots=True)
class RespSecurity:
    """The demands of a server. Without arguments it demands nothing.

    Args:
        identity: with it every connection begins with a TLS handshake; None for connections in the clear.
        certificates: whether clients show certificates; only with TLS.
        users: who may log in; None admits everyone to everything.
        certificate_names_role: whether the common name of a client's certificate must be the role.

    Raises (on creation):
        ConfigError: it lacks what it needs, or a demand could be evaded.
    """

    identity: TlsIdentity | None = None
    certificates: ClientCertificates = ClientCertificates.NONE
    users: UsersFile | None = None
    certificate_names_role: bool = False

    def __post_init__(self) -> None:
        if self.identity is not None:
            self.identity.server_context(self.certificates)  # A server that cannot serve TLS does not start.
        elif self.certificates is not ClientCertificates.NONE:
            raise ConfigError("node.client_certificates demands certificates, which a client without TLS has not: set node.tls")
        if self.certificate_names_role and (self.users is None or self.certificates is not ClientCertificates.REQUIRED):
            raise ConfigError("a certificate that names the role needs node.authentication = scram and certificates that are required")


def common_name(tls: ssl.SSLObject | None) -> str | None:
    """The common name of the client's certificate, which TLS has verified; None if it has shown none or has several names."""
    certificate = None if tls is None else tls.getpeercert()
    if not certificate:
        return None
    subject: tuple[tuple[tuple[str, str], ...], ...] = certificate.get("subject", ())  # type: ignore[assignment]
    names = [value for part in subject for name, value in part if name == "commonName"]
    return names[0] if len(names) == 1 else None
