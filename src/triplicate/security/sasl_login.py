"""The login of a client at bookies by SASL: user, mechanism and password file, and one state for each connection."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from triplicate.config import ClientSettings
from triplicate.errors import ConfigError, Unauthorized
from triplicate.security.authority import end_point_hash
from triplicate.security.core import digest_md5
from triplicate.security.core.sasl_client import CLIENT_NONCE_BYTES, DigestMd5Client, PlainClient, SaslClient, ScramSha256Client
from triplicate.security.core.sasl_server import PLAIN
from triplicate.security.core.scram_exchange import SCRAM_PLUS
from triplicate.security.secret_files import read_secret_file


@dataclass(frozen=True, slots=True)
class LoginConnection:
    """A connection on which a client is about to log in.

    Attributes:
        server: the server's name, for messages; a bookie id.
        is_protected: whether TLS protects it, so that its server is proven.
        certificate: the server's certificate (DER); None without TLS, and in the simulator.
    """

    server: str
    is_protected: bool
    certificate: bytes | None = field(default=None, repr=False)


class SaslLogin:
    """Begins the logins of one user.

    The password is read again for each connection, so that it can be changed without a restart.

    Args:
        secret: random bytes that nobody can predict (`Entropy.secret`).

    Raises (on creation):
        ConfigError: the settings contradict each other, or the password file cannot be used.
    """

    def __init__(self, settings: ClientSettings, secret: Callable[[int], bytes], *, is_protected: bool) -> None:
        self._user = settings.user
        self._mechanism = mechanism = settings.mechanism
        self._password_file = settings.password_file
        self._secret = secret
        if not settings.password_file:
            raise ConfigError("client.user is set, which needs client.password_file")
        if mechanism in (PLAIN, SCRAM_PLUS) and not is_protected:
            raise ConfigError(f"client.mechanism {mechanism} needs TLS: set client.bookie_tls to required, or use another mechanism")
        # A user or password that the mechanism cannot express is an error of the settings, and not of the first connection.
        self._new_client(binding=b"-" if mechanism == SCRAM_PLUS else None)

    @classmethod
    def of_settings(cls, settings: ClientSettings, secret: Callable[[int], bytes], *, is_protected: bool) -> SaslLogin | None:
        """The login that the settings describe; None without a user.

        Args:
            is_protected: whether TLS protects all connections.
        """
        if settings.user:
            return cls(settings, secret, is_protected=is_protected)
        if settings.password_file:
            raise ConfigError("client.password_file is set, which needs client.user")
        return None

    def begin(self, connection: LoginConnection) -> SaslClient:
        """One login on a new connection.

        Raises:
            ConfigError: the password file cannot be read any more. Unauthorized: the mechanism is not for this connection.
        """
        mechanism = self._mechanism
        if mechanism == PLAIN and not connection.is_protected:
            raise Unauthorized("PLAIN would send the password in clear; it needs client.bookie_tls")
        binding = None
        if mechanism == SCRAM_PLUS:
            if connection.certificate is None:
                raise Unauthorized(f"{mechanism} needs the certificate of a TLS connection; it needs client.bookie_tls")
            binding = end_point_hash(ssl.DER_cert_to_PEM_cert(connection.certificate).encode())
            if binding is None:
                raise Unauthorized(f"the bookie's kind of certificate has no channel binding, which client.mechanism {mechanism} needs")
        return self._new_client(binding)

    def _new_client(self, binding: bytes | None) -> SaslClient:
        user, password = self._user, read_secret_file(self._password_file, "client.password_file")
        if self._mechanism == PLAIN:
            return PlainClient(user, password)
        nonce = self._secret(CLIENT_NONCE_BYTES)
        if self._mechanism == digest_md5.MECHANISM:
            return DigestMd5Client(user, password, nonce)
        return ScramSha256Client(user, password, nonce, binding)
