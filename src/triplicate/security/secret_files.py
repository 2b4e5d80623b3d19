"""Secrets in files: passwords and tokens never come from a command line, which every user of a machine can read."""

from __future__ import annotations

import contextlib
import os
import stat

from triplicate.errors import ConfigError

SECRET_BYTES_MAX = 64 * 1024
PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700


def read_secret_file(path: str, setting: str) -> str:
    """The text of a file that only its owner may read, without the line break at its end.

    Args:
        setting: the setting that names the file, for the error.

    Raises:
        ConfigError: it cannot be read, others may read it, or it is empty, too large or not UTF-8. The error does not repeat its content.
    """
    text = read_private_text(path, setting, SECRET_BYTES_MAX).removesuffix("\n").removesuffix("\r")
    if not text:
        raise ConfigError(f"{setting}: {path} is empty")
    return text


def read_private_text(path: str, setting: str, limit_bytes: int) -> str:
    """The text of a file that only its owner may read.

    Raises:
        ConfigError: it cannot be read, others may read it, or it is too large or not UTF-8. The error does not repeat its content.
    """
    check_private(path, setting)
    try:
        with open(path, "rb") as stream:
            content = stream.read(limit_bytes + 1)
    except OSError as error:
        raise ConfigError(f"{setting}: {path} cannot be read: {error.strerror}") from None
    if len(content) > limit_bytes:
        raise ConfigError(f"{setting}: {path} has more than {limit_bytes} bytes, so it is another file than this setting means")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{setting}: {path} is not UTF-8") from None


def check_private(path: str, setting: str) -> None:
    """Check that only the owner of a file can read it.

    Raises:
        ConfigError: the file is missing, or others may read or write it.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise ConfigError(f"{setting}: {path} cannot be read: {error.strerror}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"{setting}: others than its owner may use {path} (mode {stat.S_IMODE(mode):04o}); run chmod 600 {path}")


def write_private(path: str, content: bytes) -> None:
    """Replace a file atomically and durably. At no time can others than its owner read it.

    Raises:
        OSError: it cannot be written.
    """
    prepare_private(path, content)
    replace_prepared(path)


def prepare_private(path: str, content: bytes) -> None:
    """Write the next content of a file beside it, for `replace_prepared`."""
    temporary = path + ".new"
    # A killed process may have left one with another mode, which opening it would keep.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    with open(descriptor, "wb") as stream:
        # The mask of the process may have taken rights of the owner away.
        os.fchmod(descriptor, PRIVATE_FILE)
        stream.write(content)
        stream.flush()
        os.fsync(descriptor)


def replace_prepared(path: str) -> None:
    """Let a file be what `prepare_private` wrote beside it."""
    os.replace(path + ".new", path)
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_private_directory(path: str) -> None:
    """Make a directory, and its parents, that only its owner may enter. One that exists gets that mode, too."""
    os.makedirs(path, exist_ok=True)
    os.chmod(path, PRIVATE_DIRECTORY)
