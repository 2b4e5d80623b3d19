"""The file of users of a server, read again when it changes; and its change by a command."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Mapping

from triplicate.errors import ConfigError, FormatError
from triplicate.runtime import Clock, Trace
from triplicate.security.core.scram_exchange import mock_verifier
from triplicate.security.core.users import HASH_BYTES, User, format_users, parse_users
from triplicate.security.secret_files import read_private_text

FILE_BYTES_MAX = 4 * 1024 * 1024
CHECK_INTERVAL_S = 1.0
"""Least time between two looks whether the file has changed, in seconds."""


class UsersFile:
    """The users. Used on the loop; the file is small, and read only when it has changed.

    Args:
        setting: the setting that names the file, for errors.
        secret: 16 random bytes, from which the answers for unknown users are derived: always the same for a name.

    Raises (on creation):
        ConfigError: the file cannot be used. The message names the setting.
    """

    def __init__(self, path: str, setting: str, clock: Clock, trace: Trace, secret: bytes) -> None:
        self._path = path
        self._setting = setting
        self._clock = clock
        self._trace = trace
        self._secret = secret
        self._state = _state_of(path)
        self._users: Mapping[str, User] = read_users(path, setting)
        self._check_at = clock.monotonic() + CHECK_INTERVAL_S
        self._problem = ""
        """Why the file could not be read at the last attempt."""
        self.generation = 0
        """How often the file was read again."""

    def find(self, name: str) -> tuple[User, bool]:
        """See `Users` of `sasl_server`."""
        self.refresh()
        stranger = User(name, (), mock_verifier(self._secret, name), bytes(HASH_BYTES))
        user = self._users.get(name)
        return (stranger, False) if user is None else (user, True)

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        now = self._clock.monotonic()
        if now < self._check_at:
            return
        self._check_at = now + CHECK_INTERVAL_S
        state = _state_of(self._path)
        if state == self._state:
            return
        try:
            users = read_users(self._path, self._setting)
        except ConfigError as error:
            # Half written, or a mistake of an editor: the users of before stay, and the file is tried again.
            if str(error) != self._problem:
                self._problem = str(error)
                self._trace("security.users_not_renewed", error=self._problem)
            return
        self._users, self._state, self._problem = users, state, ""
        self.generation += 1
        self._trace("security.users_renewed", file=self._path, users=len(users))

    def same_user(self, proven: User) -> User | None:
        """The user of this name as it is now, if its password is the one that was proven; else None."""
        self.refresh()
        user = self._users.get(proven.name)
        return user if user is not None and user.scram == proven.scram else None

    def current(self, name: str) -> User | None:
        """The user of this name; None if there is none."""
        return self._users.get(name)


def read_users(path: str, setting: str) -> dict[str, User]:
    """The users in a file, which only its owner may read.

    Raises:
        ConfigError: the file cannot be used.
    """
    text = read_private_text(path, setting, FILE_BYTES_MAX)
    try:
        return parse_users(text)
    except FormatError as error:
        raise ConfigError(f"{setting}: {path}: {error}") from None


def change_users(path: str, setting: str, change: Callable[[dict[str, User]], None]) -> None:
    """Read the users, change them, and write them. Concurrent changes follow one another; a missing file has no users.

    Args:
        change: called with the users; what it leaves is written. Nothing is written if it raises.

    Raises:
        ConfigError: the file cannot be used, or its folder not be written.
    """
    try:
        folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            users = read_users(path, setting) if os.path.exists(path) else {}
            change(users)
            write_users(path, users)
        finally:
            os.close(folder)
    except OSError as error:
        raise ConfigError(f"{setting}: {path} cannot be written: {error.strerror}") from None


def write_users(path: str, users: Mapping[str, User]) -> None:
    """Replace the file atomically and durably. At no time can others than its owner read it.

    Raises:
        OSError: it cannot be written.
    """
    temporary = f"{path}.new"
    if os.path.lexists(temporary):
        # It is left over from a killed command.
        os.unlink(temporary)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as stream:
        stream.write(format_users(users).encode())
        stream.flush()
        os.fsync(descriptor)
    os.replace(temporary, path)
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _state_of(path: str) -> tuple[int, int, int] | None:
    """Inode, size and time of modification in nanoseconds; None if there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
