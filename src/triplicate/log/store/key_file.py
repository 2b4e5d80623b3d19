"""The key file of a process: read again, if it has changed, for a key that it lacked, so that keys are added without a restart."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable
from typing import NamedTuple

from triplicate.errors import ArgumentError, ConfigError
from triplicate.log.core.key_lines import HEADING, free_key_id, key_line, parse_keys

SETTING = "log_client.keys_file"
READ_AGAIN_S = 60.0
"""The file is read again at this age, so that a key that was taken out of it is not used for long."""
FILE_LIMIT_BYTES = 256 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class NoKeys:
    """The keys of a process without a key file (KeySource)."""

    place = f"any key file, since none is named: set {SETTING} (TRIPLICATE_LOG_CLIENT_KEYS_FILE)"

    def find(self, key_id: str) -> bytes | None:
        return None

    def newest(self) -> str | None:
        return None


class KeyFile:
    """The keys of a file (KeySource). It is small and local; it is read when a ledger begins, never for an entry.

    Args:
        monotonic: seconds, by which the age of what was read is measured.
    """

    def __init__(self, path: str, monotonic: Callable[[], float]) -> None:
        self._path = path
        self._monotonic = monotonic
        self._keys: dict[str, bytes] = {}
        self._read_at: float | None = None
        self._version: FileVersion | None = None
        """That of the file when it was read."""

    @property
    def place(self) -> str:
        return f"{self._path} ({SETTING})"

    def find(self, key_id: str) -> bytes | None:
        if self._is_old() or (key_id not in self._keys and self._version != file_version(self._path)):
            self._read()
        return self._keys.get(key_id)

    def newest(self) -> str | None:
        if self._is_old() or self._version != file_version(self._path):
            self._read()
        return next(reversed(self._keys), None)

    def _is_old(self) -> bool:
        return self._read_at is None or self._monotonic() - self._read_at > READ_AGAIN_S

    def _read(self) -> None:
        version = file_version(self._path)  # Before the keys, so that a key that comes meanwhile makes it another one.
        self._keys = read_keys(self._path)
        self._version, self._read_at = version, self._monotonic()


class FileVersion(NamedTuple):
    """The facts of a file that differ when a key was added to it or another file took its place."""

    device: int
    inode: int
    size_bytes: int
    changed_ns: int


def file_version(path: str) -> FileVersion | None:
    """None: there is no such file, or it cannot be looked at."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return FileVersion(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def read_keys(path: str) -> dict[str, bytes]:
    """The keys of a file by id, the newest last.

    Raises:
        ConfigError: it cannot be read, others may read it, or a line of it is no key.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            check_private(descriptor, path)
            return parse_keys(_read_text(descriptor, path), path)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ConfigError(f"the key file {path} ({SETTING}) cannot be read: {error.strerror}") from error


def check_private(descriptor: int, path: str) -> None:
    """Check that nobody but the owner may read or write an open file. Raises ConfigError with the cure."""
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if mode & _OTHERS:
        raise ConfigError(f"the key file {path} may be read or changed by others (mode {mode:04o}): chmod 600 {path}")


def _read_text(descriptor: int, path: str) -> str:
    data = os.pread(descriptor, FILE_LIMIT_BYTES + 1, 0)
    if len(data) > FILE_LIMIT_BYTES:
        raise ConfigError(f"the key file {path} has more than {FILE_LIMIT_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"the key file {path} is not UTF-8 text") from None


def add_key(path: str, key_id: str | None, day: str, new_key: Callable[[], bytes]) -> str:
    """Add a new key to a file, which is created with mode 0600 if it does not exist. The key is on disk when the call returns.

    Args:
        key_id: None: the day.
        day: as 2026-11-26.
        new_key: makes the 32 bytes of the key.

    Returns:
        The key's id.

    Raises:
        ArgumentError: the file has a key of this id. ConfigError: as `read_keys`, or the file cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            check_private(descriptor, path)
            text = _read_text(descriptor, path)
            keys = parse_keys(text, path)
            chosen = free_key_id(day, keys) if key_id is None else key_id
            if chosen in keys:
                raise ArgumentError(f"{path} has a key {chosen!r} already; an id is never given to another key")
            line = ("" if text.endswith("\n") else "\n") if text else HEADING
            data = (line + key_line(chosen, new_key())).encode()
            if os.write(descriptor, data) != len(data):
                raise ConfigError(f"the key file {path} could not be written whole: is the disk full? Take the last line out of it")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _sync_directory(path)
    except OSError as error:
        raise ConfigError(f"the key file {path} cannot be written: {error.strerror}") from error
    return chosen


def _sync_directory(path: str) -> None:
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
