"""When the certificates in files expire."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from triplicate.config import SecuritySettings
from triplicate.errors import ConfigError
from triplicate.security.authority import facts_of, split_certificates


class ExpiringFile:
    """A PEM file with certificates, decoded again when it changes.

    Raises (on creation):
        ConfigError: it cannot be read, or holds no certificates.
    """

    def __init__(self, path: str, setting: str) -> None:
        self.path = path
        self.setting = setting
        self._state: tuple[int, int, int] | None = None
        self._expires_s = 0.0
        self._read()

    def expires_s(self) -> float:
        """When the first of its certificates expires, in seconds since the epoch; of the last readable content."""
        # A file that cannot be read is being replaced; it is read at the next request.
        with contextlib.suppress(ConfigError):
            self._read()
        return self._expires_s

    def _read(self) -> None:
        try:
            found = os.stat(self.path)
            state = (found.st_ino, found.st_size, found.st_mtime_ns)
            if state == self._state:
                return
            with open(self.path, "rb") as stream:
                pem = stream.read()
        except OSError as error:
            raise ConfigError(f"{self.setting}: {self.path} cannot be read: {error.strerror}") from None
        try:
            self._expires_s = min(facts_of(each).expires_s for each in split_certificates(pem))
        except ConfigError as error:
            raise ConfigError(f"{self.setting}: {self.path}: {error}") from None
        self._state = state


def expiring_files(settings: SecuritySettings) -> Iterator[ExpiringFile]:
    """The files with certificates that the settings name.

    Raises:
        ConfigError: one cannot be read, or holds no certificates.
    """
    if settings.ca_file:
        yield ExpiringFile(settings.ca_file, "security.ca_file")
    if settings.certificate_file:
        yield ExpiringFile(settings.certificate_file, "security.certificate_file")
