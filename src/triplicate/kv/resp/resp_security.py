"""The demands of the server on its clients, and why it refuses them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from enum import Enum

from triplicate.config import NodeSettings, RespSettings
from triplicate.errors import ConfigError
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.runtime import Host
from triplicate.security import ClientCertificates, TlsIdentity, UsersFile, is_loopback


class RespRefusal(Enum):
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
    HANDSHAKES = "handshakes"


class CredentialsRefused(CommandError):
    """A login is refused.

    Args:
        logged: the cause for the audit log, where the client learns less.
    """

    def __init__(self, reason: RespRefusal, text: str, logged: str = "") -> None:
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

    @classmethod
    def of_settings(cls, host: Host, node: NodeSettings, resp: RespSettings, identity: TlsIdentity | None) -> RespSecurity:
        """The demands of a node's settings. RESP has no way to ask for TLS, so the port has it unless node.tls is off.

        Raises:
            ConfigError: as the class; or nobody could log in, or everybody could though a file of users is named.
        """
        has_tls = node.tls != "off"
        if has_tls and identity is None:
            raise ConfigError(f"node.tls is {node.tls}, but security.ca_file, certificate_file and key_file are not set")
        names_role = node.client_certificates == "role"
        certificates = ClientCertificates.REQUIRED if names_role else ClientCertificates(node.client_certificates)
        users = None
        if node.authentication == "scram":
            if not resp.users_file:
                raise ConfigError("resp.users_file is not set, and node.authentication is scram: nobody could log in")
            if not has_tls and not is_loopback(resp.host or node.host):
                raise ConfigError("node.tls is off: clients of RESP would send passwords in clear. Set it, or resp.host = 127.0.0.1")
            users = UsersFile(resp.users_file, "resp.users_file", host.clock, host.trace, host.entropy.secret(16))
        elif resp.users_file:
            raise ConfigError("resp.users_file is set, but node.authentication is trust and checks no user: set it to scram")
        return cls(identity if has_tls else None, certificates, users, names_role)


def common_name(tls: ssl.SSLObject | None) -> str | None:
    """The common name of the client's certificate, which TLS has verified; None if it has shown none or has several names."""
    certificate = None if tls is None else tls.getpeercert()
    if not certificate:
        return None
    subject: tuple[tuple[tuple[str, str], ...], ...] = certificate.get("subject", ())  # type: ignore[assignment]
    names = [value for part in subject for name, value in part if name == "commonName"]
    return names[0] if len(names) == 1 else None
