"""Entries as bytes: header, digest, payload; and the keys derived from a ledger's password.

An entry is ``ledger id i64, entry id i64, last add confirmed i64, length i64, digest, payload``, big-endian. The digest covers the
32 header bytes and the payload as one stream, not itself. `length` counts the payload bytes of the ledger up to and including
this entry. `entry_bulk` decodes and verifies many entries at once. Source: BookKeeper `DigestManager` and its subclasses.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

from google_crc32c import extend as _crc32c_extend
from google_crc32c import value as _crc32c_value

from triplicate.errors import DigestMismatch

ENTRY_HEADER = Struct(">qqqq")
"""The header of every entry: ledger id, entry id, last add confirmed, length."""

HEADER_BYTES = ENTRY_HEADER.size
MASTER_KEY_BYTES = 20

LAC_RECORD = Struct(">qq")
"""Ledger id, last add confirmed: an explicit last-add-confirmed, before its digest."""

_pack_header = ENTRY_HEADER.pack
_unpack_header = ENTRY_HEADER.unpack_from
_pack_u32 = Struct(">I").pack
_unpack_crc32c_head = Struct(">32sI").unpack_from
_pack_u64 = Struct(">Q").pack

Digest = Callable[[bytes, bytes], bytes]


class DigestType(IntEnum):
    """The digest of a ledger's entries. The values are those of ledger metadata; BookKeeper's API calls them CRC32, MAC, CRC32C, DUMMY."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4

    @property
    def size(self) -> int:
        """Bytes of the digest in an entry (CRC32 is written as a 64-bit integer)."""
        return _DIGEST_BYTES[self]


_DIGEST_BYTES = {DigestType.CRC32: 8, DigestType.HMAC: 20, DigestType.CRC32C: 4, DigestType.DUMMY: 0}


@dataclass(slots=True)
class Entry:
    """One verified entry. `length` is the ledger's payload bytes up to and including this entry."""

    ledger_id: int
    entry_id: int
    last_add_confirmed: int
    length: int
    payload: bytes


def derive_master_key(password: bytes) -> bytes:
    """The 20 bytes sent with adds and fencing reads: SHA1("ledger" + password), for any digest type."""
    return hashlib.sha1(b"ledger" + password, usedforsecurity=False).digest()


def _crc32c_digest(header: bytes, payload: bytes) -> bytes:
    return _pack_u32(_crc32c_extend(_crc32c_value(header), payload))


def _crc32_digest(header: bytes, payload: bytes) -> bytes:
    return _pack_u64(zlib.crc32(payload, zlib.crc32(header)))


def _dummy_digest(header: bytes, payload: bytes) -> bytes:
    return b""


def _hmac_digest(password: bytes) -> Digest:
    keyed = hmac.new(hashlib.sha1(b"mac" + password, usedforsecurity=False).digest(), digestmod="sha1")

    def digest(header: bytes, payload: bytes) -> bytes:
        state = keyed.copy()
        state.update(header)
        state.update(payload)
        return state.digest()

    return digest


def digest_function(digest_type: DigestType, password: bytes) -> Digest:
    """The digest of (header, payload), as the bytes that an entry stores; empty for DUMMY."""
    if digest_type is DigestType.CRC32C:
        return _crc32c_digest
    if digest_type is DigestType.CRC32:
        return _crc32_digest
    if digest_type is DigestType.HMAC:
        return _hmac_digest(password)
    return _dummy_digest


class EntryCodec:
    """Builds and verifies the entries of one ledger.

    Args:
        ledger_id: the ledger whose entries these are.
        digest_type: as in the ledger's metadata.
        password: as in the ledger's metadata; the key of HMAC and of the master key.
    """

    __slots__ = ("_digest", "_is_crc32c", "digest_type", "ledger_id", "master_key", "overhead")

    def __init__(self, ledger_id: int, digest_type: DigestType, password: bytes) -> None:
        self.ledger_id = ledger_id
        self.digest_type = DigestType(digest_type)
        self.master_key = derive_master_key(password)
        self.overhead = HEADER_BYTES + self.digest_type.size
        """Bytes of an entry beside its payload."""
        self._digest = digest_function(self.digest_type, password)
        self._is_crc32c = self.digest_type is DigestType.CRC32C

    def encode(self, entry_id: int, last_add_confirmed: int, length: int, payload: bytes, prefix: bytes = b"") -> bytes:
        """A complete entry.

        Args:
            length: payload bytes of the ledger including this payload.
            prefix: bytes to put in front (a frame's beginning, `wire.add_prefix`), which saves the writer one copy.
        """
        header = _pack_header(self.ledger_id, entry_id, last_add_confirmed, length)
        if self._is_crc32c:
            # The default digest is computed in line: saving the call saves a fifth of the time on the append path.
            return b"".join((prefix, header, _pack_u32(_crc32c_extend(_crc32c_value(header), payload)), payload))
        return b"".join((prefix, header, self._digest(header, payload), payload))

    def decode(self, body: bytes | memoryview, entry_id: int | None = None) -> Entry:
        """Verify and decode a complete entry.

        Args:
            entry_id: the requested entry; None accepts any (for an answer to "read the last entry").

        Raises:
            DigestMismatch: too short, digest wrong, or another ledger's or another id's entry. Read another replica.
        """
        body = bytes(body)
        start = self.overhead
        if len(body) < start:
            raise self.mismatch(
                entry_id, f"{len(body)} bytes are fewer than header and digest ({start} bytes with {self.digest_type.name})"
            )
        payload = body[start:]
        if self._is_crc32c:
            # In line, as in `encode`.
            header, stored = _unpack_crc32c_head(body)
            is_right = _crc32c_extend(_crc32c_value(header), payload) == stored
        else:
            is_right = self._digest(body[:HEADER_BYTES], payload) == body[HEADER_BYTES:start]
        if not is_right:
            raise self.mismatch(entry_id, f"the {self.digest_type.name} digest does not match its bytes, or the password differs")
        found_ledger, found_entry, last_add_confirmed, length = _unpack_header(body)
        if found_ledger != self.ledger_id:
            raise self.mismatch(entry_id, f"the bytes are an entry of ledger {found_ledger}")
        if entry_id is not None and found_entry != entry_id:
            raise self.mismatch(entry_id, f"the bytes are entry {found_entry}")
        return Entry(found_ledger, found_entry, last_add_confirmed, length, payload)

    def encode_lac(self, last_add_confirmed: int) -> bytes:
        """The signed record of an explicit last add confirmed."""
        header = LAC_RECORD.pack(self.ledger_id, last_add_confirmed)
        return header + self._digest(header, b"")

    def decode_lac(self, record: bytes | memoryview) -> int:
        """The last add confirmed in a signed record.

        Raises:
            DigestMismatch: too short, digest wrong, or another ledger's record. Ask another bookie.
        """
        record = bytes(record)
        end = LAC_RECORD.size + self.digest_type.size
        where = f"explicit last-add-confirmed record of ledger {self.ledger_id}"
        if len(record) < end:
            raise DigestMismatch(f"{where}: {len(record)} bytes instead of {end}; ask another bookie")
        header = record[: LAC_RECORD.size]
        if self._digest(header, b"") != record[LAC_RECORD.size : end]:
            raise DigestMismatch(f"{where}: the {self.digest_type.name} digest does not match, or the password differs; ask another bookie")
        found_ledger, last_add_confirmed = LAC_RECORD.unpack(header)
        if found_ledger != self.ledger_id:
            raise DigestMismatch(f"{where}: the bytes belong to ledger {found_ledger}; ask another bookie")
        return int(last_add_confirmed)

    def mismatch(self, entry_id: int | None, what: str) -> DigestMismatch:
        """The error of a copy that is not this entry, or not intact; `entry_id` is None for a ledger's last entry."""
        name = "last entry" if entry_id is None else f"entry {entry_id}"
        return DigestMismatch(f"ledger {self.ledger_id}, {name}: {what}; read another replica and scrub this one")
