"""How a process proves to a metadata store that it belongs to the cluster, and how it recognises the store.

An embedded store is a file, which its mode protects; this concerns ZooKeeper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from triplicate.config import MetadataSettings, SecuritySettings
from triplicate.errors import ConfigError
from triplicate.runtime import Host
from triplicate.security import TlsIdentity, read_secret_file

PASSWORDS_MAX = 2
"""The present password, and another one during a rotation."""


class AclState(Enum):
    """The users of a node, by its ACL."""

    OPEN = "open"
    """Everyone has a permission on it."""
    OURS = "ours"
    """This process's user alone."""
    OTHER = "other"
    """Not everyone, and not this process's user alone."""


_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}", re.ASCII)
"""ZooKeeper reads '/' and '@' in a user of SASL as parts of a Kerberos principal, and ':' ends a user of `digest`."""


@dataclass(frozen=True, slots=True)
class MetadataAccess:
    """Access to a metadata store. The default authenticates nobody, verifies nothing, and creates open nodes.

    Raises:
        ConfigError: settings that belong together are not all there, or contradict each other.
    """

    settings: MetadataSettings = field(default_factory=MetadataSettings)
    tls: TlsIdentity | None = None
    """Of a connection with TLS; None for one without."""

    def __post_init__(self) -> None:
        settings = self.settings
        if settings.tls and self.tls is None:
            raise ConfigError("metadata.tls is on and security.ca_file is not set: name the authority that signed ZooKeeper's certificates")
        if bool(settings.user) != bool(settings.password_file):
            raise ConfigError("metadata.user and metadata.password_file belong together: set both or none")
        if settings.user and not _USER.fullmatch(settings.user):
            raise ConfigError(f"metadata.user: {settings.user!r} is no user of ZooKeeper: letters, digits, '_', '.' and '-', at most 64")
        if settings.user and settings.mechanism == "digest" and self.tls is None:
            raise ConfigError("metadata.mechanism digest sends the password itself: turn metadata.tls on, or use sasl")

    @classmethod
    def of(cls, settings: MetadataSettings, security: SecuritySettings, host: Host) -> MetadataAccess:
        """The access that settings describe. Reads the files that they name once, so that a wrong one is reported at once.

        Raises:
            ConfigError: also if a file is missing, unreadable, or readable by others. The message names the setting.
        """
        access = cls(settings, TlsIdentity.open(security, host.clock, host.trace) if settings.tls else None)
        access.passwords()
        return access

    @property
    def closes_nodes(self) -> bool:
        """Whether the nodes that this process creates are its user's alone."""
        return bool(self.settings.user) and self.settings.acl == "creator"

    @property
    def user_text(self) -> str:
        """The user and the settings behind it, for errors."""
        settings = self.settings
        if not settings.user:
            return "a process without metadata.user"
        return f"user {settings.user} (metadata.user, metadata.password_file, metadata.mechanism {settings.mechanism})"

    def passwords(self) -> tuple[str, ...]:
        """The passwords in the file at this moment, at most `PASSWORDS_MAX`; none without a user.

        Raises:
            ConfigError: the file cannot be read, others may read it, or it holds something else. The error does not repeat its content.
        """
        path = self.settings.password_file
        if not path:
            return ()
        lines = read_secret_file(path, "metadata.password_file").splitlines()
        if len(lines) > PASSWORDS_MAX or not all(line and line.isprintable() for line in lines):
            raise ConfigError(f"metadata.password_file: {path} holds one password, or one in each of two lines, in printable characters")
        return tuple(lines)
