"""The files of a secured ZooKeeper server: TLS alone on its port, SASL for every session, passwords readable by the owner only.

Source: ZooKeeper Administrator's Guide (encryption, authentication and authorization options), `PEMFileLoader`, `AuthenticationHelper`.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from triplicate.config import SecuritySettings
from triplicate.errors import ConfigError
from triplicate.security import check_private

JAAS_SETTING = "triplicate.jaasFile"
"""A key of ``zoo.cfg`` that names the JAAS file. ZooKeeper takes unknown keys as properties of its own, and Java needs this one earlier."""

NETTY_JARS = (
    "netty-buffer",
    "netty-codec-base",
    "netty-common",
    "netty-handler",
    "netty-resolver",
    "netty-transport-4",
    "netty-transport-classes-epoll",
    "netty-transport-native-unix-common",
)
"""Jars of PySpark's that a server with TLS needs beside the others."""

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ZooKeeperSecurity:
    """The certificate and the users of a secured server.

    Raises:
        ConfigError: a part is missing, or a user or password cannot be written into the files.
    """

    identity: SecuritySettings
    """The server's certificate with its key, and the authority that signs the clients' certificates."""
    users: Mapping[str, str] = field(repr=False)
    """Password of each user, for SASL."""
    requires_certificates: bool = True
    """Whether clients must show a certificate of the authority."""

    def __post_init__(self) -> None:
        settings = self.identity
        if not (settings.ca_file and settings.certificate_file and settings.key_file):
            raise ConfigError("a ZooKeeper with TLS needs security.ca_file, security.certificate_file and security.key_file")
        if not self.users:
            raise ConfigError("a secured ZooKeeper needs a user with a password: without one nobody can open a session")
        for user, password in self.users.items():
            if not _USER.fullmatch(user):
                raise ConfigError(f"{user!r} cannot be a user of ZooKeeper: letters, digits, '_', '.' and '-', at most 64")
            if not password or not password.isprintable():
                raise ConfigError(f"the password of ZooKeeper's user {user} is empty or has characters that cannot be printed")


def write_secure_files(folder: Path, security: ZooKeeperSecurity) -> Mapping[str, object]:
    """Write the key store and the JAAS file of a server, with mode 0600, and return the settings for its ``zoo.cfg``.

    Write them again when a certificate or password changes. The server reads a new key store by itself, and the JAAS file when it starts.

    Args:
        folder: of the server; made with mode 0700 if it is missing.

    Returns:
        Settings for `configuration`, whose port then serves TLS only.

    Raises:
        ConfigError: the key or the certificate cannot be read, or others may read the key.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity = security.identity
    check_private(identity.key_file, "security.key_file")
    key_store, jaas = folder / "keystore.pem", folder / "jaas.conf"
    try:
        # ZooKeeper expects the key and the certificates in one file.
        content = Path(identity.key_file).read_bytes().rstrip() + b"\n" + Path(identity.certificate_file).read_bytes()
    except OSError as error:
        raise ConfigError(f"security.certificate_file: {error.filename} cannot be read: {error.strerror}") from None
    _replace_private(key_store, content)
    _replace_private(jaas, _jaas(security.users).encode())
    return {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": key_store,
        "ssl.keyStore.type": "PEM",
        "ssl.trustStore.location": os.path.abspath(identity.ca_file),
        "ssl.trustStore.type": "PEM",
        "ssl.clientAuth": "need" if security.requires_certificates else "none",
        "ssl.enabledProtocols": "TLSv1.3,TLSv1.2",
        "client.certReload": "true",
        "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "enforce.auth.enabled": "true",
        "enforce.auth.schemes": "sasl",
        "sessionRequireClientSASLAuth": "true",
        "4lw.commands.whitelist": "srvr",
        JAAS_SETTING: jaas,
    }


def _replace_private(path: Path, content: bytes) -> None:
    """Replace a file atomically by one that only its owner may read, from its creation on."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)


def _jaas(users: Mapping[str, str]) -> str:
    lines = [f'  user_{user}="{_escaped(password)}"' for user, password in users.items()]
    return "Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n" + "\n".join(lines) + ";\n};\n"


def _escaped(password: str) -> str:
    """As Java's parser of these files reads a quoted text."""
    return password.replace("\\", "\\\\").replace('"', '\\"')


def probe_context(settings: Mapping[str, str]) -> ssl.SSLContext | None:
    """A context to ask the server of a ``zoo.cfg`` whether it serves; None for a server without TLS.

    It shows the server's own certificate, and verifies the authority but no name: it asks on this machine only.

    Raises:
        ConfigError: the key store or the trust store is not usable.
    """
    if "secureClientPort" not in settings:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    try:
        context.load_verify_locations(cafile=settings["ssl.trustStore.location"])
        context.load_cert_chain(settings["ssl.keyStore.location"])
    except KeyError as error:
        raise ConfigError(f"the zoo.cfg of a server with TLS lacks {error.args[0]}") from None
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"the key store or the trust store of ZooKeeper cannot be used ({error})") from None
    return context
