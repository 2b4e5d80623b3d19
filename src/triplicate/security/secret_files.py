"""Secrets in files: passwords and tokens never come from a command line, which every user of a machine can read."""

from __future__ import annotations

import os
import stat

from triplicate.errors import ConfigError

SECRET_BYTES_MAX = 64 * 1024


def read_secret_file(path: str, setting: str) -> str:
    """The text of a file that only its owner may read, without the line break at its end.

    Args:
        setting: the setting that names the file, for the error.

    Raises:
        ConfigError: it cannot be read, others may read it, or it is empty, too large or not UTF-8. The error does not repeat its content.
    """
    check_private(path, setting)
    try:
        with open(path, "rb") as stream:
            content = stream.read(SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{setting}: {path} cannot be read: {error.strerror}") from None
    if len(content) > SECRET_BYTES_MAX:
        raise ConfigError(f"{setting}: {path} has more than {SECRET_BYTES_MAX} bytes, so it holds no password or token")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{setting}: {path} is not UTF-8") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise ConfigError(f"{setting}: {path} is empty")
    return text


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
