"""Encryption of the entries of a ledger with AES-256-GCM: the encryption block, and the two sides. `docs/formats/log.md` fixes the bytes.

Every ledger is encrypted under a key of its own, derived by HKDF-SHA256 from the named key, a random salt, the ledger's id and the log's
id. Nonces are a counter. So no nonce repeats under one derived key, however many ledgers and processes share the named key: a ledger
has one writer, ledger ids are given once, and the salt differs where ids are given again. See decision 67.
"""

from __future__ import annotations

import re
import struct
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from triplicate.errors import ArgumentError, ConfigError, EntryNotAuthentic, FormatError, LogKeyMissing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Buffer = bytes | bytearray | memoryview

BLOCK = struct.Struct("<16s16sQQQBB6s")
BLOCK_SIZE = BLOCK.size
TAG_SIZE = 16
KEY_SIZE = 32
SALT_SIZE = 16
KEY_ID_LIMIT = 16
WRITTEN, STAGED = 0, 1
"""Origins: the log's writer, which knows the offset of each entry; a staging ledger, which gets its offsets when it is published."""
ENTRIES, SNAPSHOT = b"triplicate-log-entries-1", b"triplicate-log-snapshot-1"
"""Uses of derived keys; no key serves both."""
CIPHERS_KEPT = 64
"""Derived keys that a decryptor keeps. A rewritten ledger has entries of many."""
_KEY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NO_RESERVED = bytes(6)


class KeySource(Protocol):
    """The keys of a process."""

    @property
    def place(self) -> str:
        """Where the keys are, for messages."""

    def find(self, key_id: str, /) -> bytes | None:
        """A key of 32 bytes, or None. Raises ConfigError: the keys cannot be read, or others may read them."""

    def newest(self) -> str | None:
        """The id of the newest key, or None. Raises ConfigError."""


class EncryptionBlock(NamedTuple):
    """How one entry is encrypted; stored in clear behind the entry's header, and authenticated with it.

    Args:
        key_id: names the key from which the ledger's own key was derived.
        salt: 16 bytes, one value for each ledger.
        ledger_id: the ledger for which the entry was encrypted; a rewriting copies the entry into another.
        number: the nonce: how many entries were encrypted before under the derived key.
        place: offset of the first record in the log (origin `WRITTEN`), or index within the ledger (origin `STAGED`).
        control: 0 for records, otherwise 1 + the place of the control record's kind among all kinds.
        origin: `WRITTEN` or `STAGED`.
    """

    key_id: str
    salt: bytes
    ledger_id: int
    number: int
    place: int
    control: int
    origin: int


def check_key_id(key_id: str) -> str:
    """A valid id of a key.

    Raises:
        ArgumentError: it is empty, longer than 16 characters, or has others than letters, digits, dot, hyphen and underscore.
    """
    if not _KEY_ID.fullmatch(key_id) or len(key_id) > KEY_ID_LIMIT:
        raise ArgumentError(
            f"{key_id!r} is no id of a key: it has 1 to {KEY_ID_LIMIT} letters, digits, dots, hyphens and underscores, and begins with a "
            "letter or digit"
        )
    return key_id


def encode_block(block: EncryptionBlock) -> bytes:
    """The block's 64 bytes."""
    return BLOCK.pack(
        block.key_id.encode(), block.salt, block.ledger_id, block.number, block.place, block.control, block.origin, _NO_RESERVED
    )


def decode_block(data: Buffer, offset: int = 0) -> EncryptionBlock:
    """Read a block.

    Raises:
        FormatError: a later release wrote it.
    """
    key_id, salt, ledger_id, number, place, control, origin, reserved = BLOCK.unpack_from(data, offset)
    name = key_id.rstrip(b"\0").decode("latin-1")
    if reserved != _NO_RESERVED or origin not in (WRITTEN, STAGED) or not _KEY_ID.fullmatch(name):
        raise FormatError(f"encrypted entry has origin {origin}, key id {name!r} and reserved bytes {reserved.hex()}: upgrade Triplicate")
    return EncryptionBlock(name, salt, ledger_id, number, place, control, origin)


def derive_cipher(key: bytes, domain: bytes, log_id: str, block: EncryptionBlock) -> AESGCM:
    """The cipher of one ledger.

    Args:
        domain: what it is for, `ENTRIES` or `SNAPSHOT`.
        block: of any entry of the ledger.

    Raises:
        ConfigError: the package cryptography is not installed.
    """
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ModuleNotFoundError as error:
        raise ConfigError(
            "encrypted logs need the package cryptography, which is not installed: pip install 'triplicate[security]'"
        ) from error
    info = b"".join((domain, b"\0", block.ledger_id.to_bytes(8, "little"), block.key_id.encode().ljust(16, b"\0"), log_id.encode()))
    return AESGCM(HKDF(SHA256(), KEY_SIZE, block.salt, info).derive(key))


def _nonce(block: EncryptionBlock) -> bytes:
    return block.number.to_bytes(12, "big")


class LedgerEncryptor:
    """Encrypts the entries of one ledger. One object for the ledger's whole life: the counter must not begin again.

    Args:
        key_id, key: the named key.
        domain: `ENTRIES` or `SNAPSHOT`.
        salt: 16 bytes that cannot be predicted.
        origin: `WRITTEN` or `STAGED`.

    Raises:
        ConfigError: see `derive_cipher`.
    """

    def __init__(self, key_id: str, key: bytes, domain: bytes, log_id: str, ledger_id: int, salt: bytes, origin: int) -> None:
        self._first = EncryptionBlock(key_id, salt, ledger_id, 0, 0, 0, origin)
        self._key = key
        self._domain = domain
        self._cipher = derive_cipher(key, domain, log_id, self._first)
        self._number = 0

    @property
    def key_id(self) -> str:
        return self._first.key_id

    def following(self, log_id: str, ledger_id: int, salt: bytes) -> LedgerEncryptor:
        """An encryptor for the next ledger of the log, under the same named key."""
        return LedgerEncryptor(self.key_id, self._key, self._domain, log_id, ledger_id, salt, self._first.origin)

    def encrypt(self, header: bytes, authenticated: bytes, body: Buffer, place: int, control: int = 0) -> bytes:
        """A whole payload: header, encryption block, encrypted body and tag.

        Args:
            authenticated: the part of the header that is authenticated beside the block and the body.
        """
        block = self._first._replace(number=self._number, place=place, control=control)
        self._number += 1
        encoded = encode_block(block)
        return b"".join((header, encoded, self._cipher.encrypt(_nonce(block), body, authenticated + encoded)))


class LedgerDecryptor:
    """Decrypts entries of one log, in whichever of its ledgers and under whichever key.

    Args:
        log: its name, for messages.
        domain: `ENTRIES` or `SNAPSHOT`.
    """

    def __init__(self, log: str, log_id: str, keys: KeySource, domain: bytes) -> None:
        self.log = log
        self._log_id = log_id
        self._keys = keys
        self._domain = domain
        self._ciphers: OrderedDict[tuple[str, bytes, int], AESGCM] = OrderedDict()

    def decrypt(self, block: EncryptionBlock, authenticated: bytes, body: Buffer, ledger_id: int, entry_id: int) -> bytes:
        """The body.

        Args:
            authenticated: as for `LedgerEncryptor.encrypt`.
            body: with the tag.
            ledger_id, entry_id: where the entry was read, for messages.

        Raises:
            LogKeyMissing: this process has no such key. EntryNotAuthentic: another key, or the entry was changed. ConfigError.
        """
        cipher = self._cipher(block)
        from cryptography.exceptions import InvalidTag

        try:
            return cipher.decrypt(_nonce(block), body, authenticated + encode_block(block))
        except InvalidTag:
            raise self.not_authentic(
                ledger_id,
                entry_id,
                f"does not decrypt under key {block.key_id!r} of {self._keys.place}: it was changed or belongs elsewhere, "
                "or the key of this id is another",
            ) from None

    def not_authentic(self, ledger_id: int, entry_id: int, reason: str) -> EntryNotAuthentic:
        """The error for an entry that is not what the log's writer wrote there."""
        return EntryNotAuthentic(f"log {self.log!r}: entry {entry_id} of ledger {ledger_id} {reason}")

    def _cipher(self, block: EncryptionBlock) -> AESGCM:
        name = (block.key_id, block.salt, block.ledger_id)
        cipher = self._ciphers.get(name)
        if cipher is None:
            cipher = derive_cipher(require_key(self._keys, self.log, block.key_id), self._domain, self._log_id, block)
            self._ciphers[name] = cipher
            if len(self._ciphers) > CIPHERS_KEPT:
                self._ciphers.popitem(last=False)
        return cipher


def require_key(keys: KeySource, log: str, key_id: str) -> bytes:
    """A key of a log. Raises LogKeyMissing, ConfigError."""
    key = keys.find(key_id)
    if key is None:
        raise LogKeyMissing(f"log {log!r} is encrypted with key {key_id!r}, which is not in {keys.place}")
    return key


class KnownKeys:
    """Keys in memory (KeySource).

    Args:
        keys: 32 bytes by id, the newest last.
    """

    place = "the keys of this process"

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._keys = dict(keys)

    def find(self, key_id: str) -> bytes | None:
        return self._keys.get(key_id)

    def newest(self) -> str | None:
        return next(reversed(self._keys), None)
