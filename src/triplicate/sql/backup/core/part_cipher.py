"""Encryption of the files of a backup with AES-256-GCM. Pure; `docs/formats/backup.md` fixes the bytes.

Each file has a key of its own, derived by HKDF-SHA256 from the named key, a random salt, the database's identity and the file's name. The
nonce of a block has its number, and whether it is the last. So no block can be changed, moved, left out or taken from another file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from triplicate.errors import BackupDamaged, ConfigError, FormatError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC = b"TRBE"
VERSION = 1
SALT_SIZE = 16
BLOCK_BYTES = 256 * 1024
"""Plain bytes of every block but the last."""
TAG_BYTES = 16
_START = struct.Struct(f"<4sB3x{SALT_SIZE}s")
START_BYTES = _START.size
_KEY_BYTES = 32
_NONCE = struct.Struct(">3xQB")
_USE = b"triplicate-backup-1\0"


class BackupKey(NamedTuple):
    """A named key of 32 bytes."""

    key_id: str
    key: bytes

    def __repr__(self) -> str:
        return f"BackupKey({self.key_id!r})"


def _cipher(key: BackupKey, salt: bytes, identity: str, name: str) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ModuleNotFoundError as error:
        raise ConfigError("encrypted backups need the package cryptography: pip install 'triplicate[security]'") from error
    info = b"\0".join((_USE, key.key_id.encode(), identity.encode(), name.encode()))
    return AESGCM(HKDF(SHA256(), _KEY_BYTES, salt, info).derive(key.key))


class PartEncryptor:
    """Encrypts one file.

    Args:
        salt: `SALT_SIZE` bytes that cannot be predicted.
        identity: of the database, hexadecimal. name: of the file.

    Raises:
        ConfigError: the package cryptography is not installed.
    """

    def __init__(self, key: BackupKey, salt: bytes, identity: str, name: str) -> None:
        self._cipher = _cipher(key, salt, identity, name)
        self._held = bytearray()
        self._number = 0
        self.start = _START.pack(MAGIC, VERSION, salt)
        """The first bytes of the file."""

    def feed(self, data: bytes) -> bytes:
        """The blocks that are complete with the next bytes of the content. The last block is held back until `finish`."""
        self._held += data
        out: list[bytes] = []
        while len(self._held) > BLOCK_BYTES:
            out.append(self._block(bytes(self._held[:BLOCK_BYTES]), is_last=False))
            del self._held[:BLOCK_BYTES]
        return b"".join(out)

    def finish(self) -> bytes:
        """The last block."""
        return self._block(bytes(self._held), is_last=True)

    def _block(self, content: bytes, *, is_last: bool) -> bytes:
        nonce = _NONCE.pack(self._number, is_last)
        self._number += 1
        return self._cipher.encrypt(nonce, content, None)


class PartDecryptor:
    """Decrypts one file.

    Args:
        place: names it in errors.
    """

    def __init__(self, key: BackupKey, identity: str, name: str, place: str) -> None:
        self._key = key
        self._identity = identity
        self._name = name
        self._place = place
        self._opened: AESGCM | None = None
        self._held = bytearray()
        self._number = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The contents of the blocks that are complete with the next bytes of the file.

        Raises:
            BackupDamaged: a block was changed, or the key is another. FormatError: a later release wrote it. ConfigError.
        """
        self._held += data
        if self._opened is None:
            if len(self._held) < START_BYTES:
                return
            self._opened = self._open()
            del self._held[:START_BYTES]
        while len(self._held) > BLOCK_BYTES + TAG_BYTES:
            block = bytes(self._held[: BLOCK_BYTES + TAG_BYTES])
            del self._held[: BLOCK_BYTES + TAG_BYTES]
            yield self._content(self._opened, block, is_last=False)

    def finish(self) -> bytes:
        """The content of the last block. Raises BackupDamaged: it is missing or was changed."""
        if self._opened is None:
            raise BackupDamaged(f"{self._place} is cut off")
        return self._content(self._opened, bytes(self._held), is_last=True)

    def _open(self) -> AESGCM:
        magic, version, salt = _START.unpack_from(self._held)
        if magic != MAGIC:
            raise BackupDamaged(f"{self._place} is no encrypted part of a backup: it begins with {magic!r}")
        if version != VERSION:
            raise FormatError(f"{self._place} is of version {version}; this release reads version {VERSION}: use the release that wrote it")
        return _cipher(self._key, salt, self._identity, self._name)

    def _content(self, cipher: AESGCM, block: bytes, *, is_last: bool) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            content = cipher.decrypt(_NONCE.pack(self._number, is_last), block, None)
        except InvalidTag:
            raise BackupDamaged(
                f"{self._place} does not decrypt under key {self._key.key_id!r}, at block {self._number}: it was changed, or the key of "
                "this id is another"
            ) from None
        self._number += 1
        return content


def sealed(key: BackupKey, salt: bytes, identity: str, name: str, content: bytes) -> bytes:
    """A small content as an encrypted file."""
    encryptor = PartEncryptor(key, salt, identity, name)
    return encryptor.start + encryptor.feed(content) + encryptor.finish()


def unsealed(key: BackupKey, identity: str, name: str, data: bytes, place: str) -> bytes:
    """The content of `sealed`. Raises as `PartDecryptor`."""
    decryptor = PartDecryptor(key, identity, name, place)
    return b"".join([*decryptor.feed(data), decryptor.finish()])
