"""The TLS identity of a process: its certificate, its key and the authorities that it trusts, read again when the files change.

A connection keeps the context with which it began. A renewed certificate therefore needs no restart: connections made after it use it.

Source: the documentation of Python's module `ssl`; BookKeeper `TLSContextFactory`.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from enum import Enum
from weakref import WeakKeyDictionary

from triplicate.config import SecuritySettings
from triplicate.errors import ConfigError
from triplicate.runtime import Clock, Trace
from triplicate.security.authority import end_point_hash
from triplicate.security.secret_files import check_private

HANDSHAKE_TIMEOUT_S = 10.0
"""Limit of one TLS handshake, in seconds. Source: BookKeeper's time-out of START_TLS."""


class ClientCertificates(Enum):
    """Whether a server requests certificates from its clients."""

    NONE = "none"
    REQUESTED = "requested"
    """A client may show one; one of another authority is refused."""
    REQUIRED = "required"


FileState = tuple[tuple[int, int, int], ...]
"""Inode, size and time of modification in nanoseconds of each file of an identity."""


@dataclass(slots=True)
class _Loaded:
    """Contexts of one state of the files."""

    state: FileState
    client: ssl.SSLContext
    servers: dict[ClientCertificates, ssl.SSLContext] = field(default_factory=dict)


class TlsIdentity:
    """Contexts for the connections of one process.

    Used on the loop. Files are read when a context is asked for, at most once in `reload_interval_s`; they are small.

    Raises (on creation):
        ConfigError: a file is missing, unreadable, readable by others, or holds something else. The message names the setting.
    """

    def __init__(self, settings: SecuritySettings, clock: Clock, trace: Trace) -> None:
        self.settings = settings
        self._clock = clock
        self._trace = trace
        self._end_points: WeakKeyDictionary[ssl.SSLContext, bytes | None] = WeakKeyDictionary()
        """Maps each context of a server to the hash of its certificate."""
        self._loaded = self._load()
        self._check_at = clock.monotonic() + settings.reload_interval_s

    @classmethod
    def open(cls, settings: SecuritySettings, clock: Clock, trace: Trace) -> TlsIdentity | None:
        """The identity that the settings name; None where they name no file."""
        named = (settings.ca_file, settings.certificate_file, settings.key_file)
        return cls(settings, clock, trace) if any(named) else None

    def client_context(self) -> ssl.SSLContext:
        """The present context for a connection to a server. It verifies the server, and its name unless `security.verify_host` is off."""
        self._renew()
        return self._loaded.client

    def server_context(self, clients: ClientCertificates) -> ssl.SSLContext:
        """The present context for a connection of a client.

        Raises:
            ConfigError: the settings name no certificate with its key.
        """
        self._renew()
        context = self._loaded.servers.get(clients)
        if context is None:
            context = self._loaded.servers[clients] = self._new_server_context(clients)
        return context

    def end_point(self, context: ssl.SSLContext) -> bytes | None:
        """The hash of a server's certificate to which its clients bind their authentication (tls-server-end-point).

        Args:
            context: of `server_context`.

        Returns:
            None where the certificate's signature has no hash of its own, so that RFC 5929 does not define it.
        """
        return self._end_points[context]

    def _renew(self) -> None:
        now = self._clock.monotonic()
        if now < self._check_at:
            return
        self._check_at = now + self.settings.reload_interval_s
        try:
            if self._state() == self._loaded.state:
                return
            loaded = self._load()
            for clients in self._loaded.servers:
                loaded.servers[clients] = self._new_server_context(clients)
        except ConfigError as error:
            # The renewed files may be half written: the old contexts serve on, and the files are tried again.
            self._trace("security.certificate_not_renewed", error=str(error))
            return
        self._loaded = loaded
        self._trace("security.certificate_renewed", file=self.settings.certificate_file)

    def _paths(self) -> tuple[str, ...]:
        named = (self.settings.ca_file, self.settings.certificate_file, self.settings.key_file)
        return tuple(path for path in named if path)

    def _state(self) -> FileState:
        try:
            found = [os.stat(path) for path in self._paths()]
        except OSError as error:
            raise ConfigError(f"a file of the TLS identity cannot be read: {error.filename}: {error.strerror}") from None
        return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in found)

    def _load(self) -> _Loaded:
        settings = self.settings
        if not settings.ca_file:
            raise ConfigError("security.ca_file is not set: without an authority no certificate can be verified")
        if bool(settings.certificate_file) != bool(settings.key_file):
            raise ConfigError("security.certificate_file and security.key_file belong together: set both or none")
        state = self._state()
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname = settings.verify_host
        self._equip(client)
        return _Loaded(state, client)

    def _new_server_context(self, clients: ClientCertificates) -> ssl.SSLContext:
        if not self.settings.certificate_file:
            raise ConfigError("a server with TLS needs security.certificate_file and security.key_file")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = _VERIFY[clients]
        certificate = _content(self.settings.certificate_file)
        self._equip(context)
        if _content(self.settings.certificate_file) != certificate:
            raise ConfigError(f"security.certificate_file: {self.settings.certificate_file} was replaced while it was read; try again")
        self._end_points[context] = end_point_hash(certificate)
        return context

    def _equip(self, context: ssl.SSLContext) -> None:
        settings = self.settings
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_verify_locations(cafile=settings.ca_file)
        except (ssl.SSLError, OSError) as error:
            raise ConfigError(f"security.ca_file: {settings.ca_file} holds no PEM certificates ({error})") from None
        if settings.certificate_file:
            check_private(settings.key_file, "security.key_file")
            try:
                context.load_cert_chain(settings.certificate_file, settings.key_file, password=_no_password)
            except (ssl.SSLError, OSError) as error:
                both = f"{settings.certificate_file} and {settings.key_file}"
                raise ConfigError(f"security.certificate_file: {both} are no certificate with its key ({error})") from None


_VERIFY = {
    ClientCertificates.NONE: ssl.CERT_NONE,
    ClientCertificates.REQUESTED: ssl.CERT_OPTIONAL,
    ClientCertificates.REQUIRED: ssl.CERT_REQUIRED,
}


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise ConfigError(f"a file of the TLS identity cannot be read: {path}: {error.strerror}") from None


def _no_password() -> str:
    """Without it OpenSSL would ask the terminal for the password of an encrypted key, and a server would wait for ever."""
    raise ConfigError("security.key_file is encrypted; give a key without a password, protected by its mode 0600")
