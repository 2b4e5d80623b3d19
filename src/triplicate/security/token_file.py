"""Bearer tokens in a file, read again when it changes, so that a token is replaced without a restart."""

from __future__ import annotations

import os

from triplicate.errors import ConfigError
from triplicate.runtime import Clock, Trace
from triplicate.security.core.bearer_tokens import BearerTokens
from triplicate.security.secret_files import read_secret_file


class TokenFile:
    """The valid tokens of a file, one on each line.

    Used on the loop. The file is looked at when a token is checked, at most once in `reload_interval_s`.

    Args:
        setting: the setting that names the file, for errors.

    Raises (on creation):
        ConfigError: the file cannot be read, others may read it, or it holds no valid tokens.
    """

    def __init__(self, path: str, setting: str, clock: Clock, trace: Trace, reload_interval_s: float) -> None:
        self._path = path
        self._setting = setting
        self._clock = clock
        self._trace = trace
        self._reload_interval_s = reload_interval_s
        self._state = self._present_state()
        self._tokens = self._read()
        self._check_at = clock.monotonic() + reload_interval_s

    def admits(self, token: str) -> bool:
        """Whether a token is one of the file's."""
        self._renew()
        return self._tokens.admits(token)

    def _renew(self) -> None:
        now = self._clock.monotonic()
        if now < self._check_at:
            return
        self._check_at = now + self._reload_interval_s
        state = self._present_state()
        if state == self._state:
            return
        try:
            self._tokens = self._read()
        except ConfigError as error:
            # It may be half written: the old tokens stay valid, and the file is tried again.
            self._trace("security.tokens_not_renewed", error=str(error))
            return
        self._state = state
        self._trace("security.tokens_renewed", file=self._path)

    def _present_state(self) -> tuple[int, int, int]:
        """Inode, size and time of modification in nanoseconds; zeros for a file that cannot be read."""
        try:
            found = os.stat(self._path)
        except OSError:
            return (0, 0, 0)
        return (found.st_ino, found.st_size, found.st_mtime_ns)

    def _read(self) -> BearerTokens:
        text = read_secret_file(self._path, self._setting)
        try:
            return BearerTokens(text)
        except ConfigError as error:
            raise ConfigError(f"{self._setting}: {self._path}: {error}") from None
