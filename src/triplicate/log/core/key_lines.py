"""The text of a key file: one line ``ID = BASE64`` for each key of 32 bytes, the newest last; lines that begin with # are comments."""

from __future__ import annotations

import base64
import binascii

from triplicate.errors import ArgumentError, ConfigError
from triplicate.log.core.encryption import KEY_SIZE, check_key_id

KEYS_MAXIMUM = 1000
"""Keys of one file."""
HEADING = "# Keys of encrypted logs, the newest last. They make the records readable; without them nobody can read these.\n"


def parse_keys(text: str, path: str) -> dict[str, bytes]:
    """The keys by id, in the order of the file.

    Args:
        path: of the file, for messages; no message has a key.

    Raises:
        ConfigError: a line is no key, an id is given twice, or there are too many.
    """
    keys: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        key_id, equals, encoded = stripped.partition("=")
        try:
            key_id = check_key_id(key_id.strip())
            key = base64.b64decode(encoded.strip(), validate=True)
        except (ArgumentError, binascii.Error):
            key = b""
        if not equals or len(key) != KEY_SIZE:
            raise ConfigError(f"{path}, line {number}: it is no key: a line is ID = {KEY_SIZE} bytes in base64")
        if key_id in keys:
            raise ConfigError(f"{path}, line {number}: key {key_id!r} is given twice")
        keys[key_id] = key
    if len(keys) > KEYS_MAXIMUM:
        raise ConfigError(f"{path} has {len(keys)} keys; {KEYS_MAXIMUM} are possible")
    return keys


def key_line(key_id: str, key: bytes) -> str:
    """The line of one key."""
    return f"{key_id} = {base64.b64encode(key).decode()}\n"


def free_key_id(day: str, taken: dict[str, bytes]) -> str:
    """An id for a new key that was not named: the day, with a number where the day has a key already.

    Args:
        day: as 2026-11-26.
    """
    number = 1
    key_id = day
    while key_id in taken:
        number += 1
        key_id = f"{day}-{number}"
    return key_id
