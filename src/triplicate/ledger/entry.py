"""Entries as bytes: header, digest, payload; and the keys derived from a ledger's password.

An entry is ``ledger id i64, entry id i64, last add confirmed i64, length i64, digest, payload``, big-endian. The digest covers the
32 header bytes and the payload as one stream, not itself. `length` counts the payload bytes of the ledger up to and including
this entry. Source: BookKeeper `DigestManager` and its subclasses.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from google_crc32c import extend as _crc32c_extend
from google_crc32c import value as _crc32c_value

from triplicate.errors import DigestMismatch

ENTRY_HEADER = Struct(">qqqq")
"""Ledger id, entry id, last add confirmed, length: what every entry begins with."""

HEADER_BYTES = ENTRY_HEADER.size
MASTER_KEY_BYTES = 20

_LAC_RECORD = Struct(">qq")
_pack_header = ENTRY_HEADER.pack
_unpack_header = ENTRY_HEADER.unpack_from
_pack_u32 = Struct(">I").pack
_unpack_crc32c_head = Struct(">32sI").unpack_from
_unpack_size = Struct(">I").unpack_from
_unpack_sized_crc32c_head = Struct(">I32sI").unpack_from
_SIZE_BYTES = 4
_new_entry = object.__new__
_CRC32C_START = HEADER_BYTES + 4
_pack_u64 = Struct(">Q").pack

Digest = Callable[[bytes, bytes], bytes]


class DigestType(IntEnum):
    """How entries are protected. The values are those of ledger metadata; API names of BookKeeper: CRC32, MAC, CRC32C, DUMMY."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4

    @property
    def size(self) -> int:
        """Bytes that the digest takes in an entry (CRC32 is written as a 64-bit integer)."""
        return _DIGEST_BYTES[self]


_DIGEST_BYTES = {DigestType.CRC32: 8, DigestType.HMAC: 20, DigestType.CRC32C: 4, DigestType.DUMMY: 0}


@dataclass(slots=True)
class Entry:
    """One entry, verified. `length` is the ledger's payload bytes up to and including this entry."""

    ledger_id: int
    entry_id: int
    last_add_confirmed: int
    length: int
    payload: bytes


class Decoded(NamedTuple):
    """Consecutive entries, verified, and why they end before all was decoded; `payload_bytes` is the sum over them."""

    entries: list[Entry]
    payload_bytes: int
    mismatch: DigestMismatch | None


def derive_master_key(password: bytes) -> bytes:
    """The 20 bytes that travel with adds and fencing reads: SHA1("ledger" + password), whatever the digest type."""
    return hashlib.sha1(b"ledger" + password, usedforsecurity=False).digest()


def entry_header(body: bytes | memoryview) -> tuple[int, int, int, int]:
    """(ledger id, entry id, last add confirmed, length) of a complete entry, unverified.

    Raises:
        DigestMismatch: the body is shorter than an entry's header.
    """
    if len(body) < HEADER_BYTES:
        raise DigestMismatch(f"an entry of {len(body)} bytes is shorter than its {HEADER_BYTES}-byte header: this copy is damaged")
    ledger_id, entry_id, last_add_confirmed, length = _unpack_header(body)
    return ledger_id, entry_id, last_add_confirmed, length


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


def _digest_function(digest_type: DigestType, password: bytes) -> Digest:
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
        self._digest = _digest_function(self.digest_type, password)
        self._is_crc32c = self.digest_type is DigestType.CRC32C

    def encode(self, entry_id: int, last_add_confirmed: int, length: int, payload: bytes, prefix: bytes = b"") -> bytes:
        """A complete entry.

        Args:
            length: payload bytes of the ledger including this payload.
            prefix: bytes to put in front (a frame's beginning, `wire.add_prefix`), which saves the writer one copy.
        """
        header = _pack_header(self.ledger_id, entry_id, last_add_confirmed, length)
        if self._is_crc32c:
            # The default digest is computed in line: a call less is a fifth less time on the append path.
            return b"".join((prefix, header, _pack_u32(_crc32c_extend(_crc32c_value(header), payload)), payload))
        return b"".join((prefix, header, self._digest(header, payload), payload))

    def decode(self, body: bytes | memoryview, entry_id: int | None = None) -> Entry:
        """Verify a complete entry and take it apart.

        Args:
            entry_id: the entry that was asked for; None accepts any (an answer to "read the last entry").

        Raises:
            DigestMismatch: too short, digest wrong, or another ledger's or another id's entry. Read another replica.
        """
        body = bytes(body)
        start = self.overhead
        if len(body) < start:
            raise self._mismatch(
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
            raise self._mismatch(entry_id, f"the {self.digest_type.name} digest does not match its bytes, or the password differs")
        found_ledger, found_entry, last_add_confirmed, length = _unpack_header(body)
        if found_ledger != self.ledger_id:
            raise self._mismatch(entry_id, f"the bytes are an entry of ledger {found_ledger}")
        if entry_id is not None and found_entry != entry_id:
            raise self._mismatch(entry_id, f"the bytes are entry {found_entry}")
        return Entry(found_ledger, found_entry, last_add_confirmed, length, payload)

    def decode_all(self, data: bytes, position: int, end: int, first_entry_id: int, most: int) -> Decoded:
        """`decode` for consecutive entries, each behind its size as u32, up to the first that it refuses.

        Args:
            data: has them from `position` to `end`.
            first_entry_id: what the first must be; the others count up from it.
            most: so many at most; what follows is not looked at.
        """
        entries: list[Entry] = []
        begin, mismatch = position, None
        if self._is_crc32c:
            position = self._decode_crc32c(data, position, end, first_entry_id, most, entries)
        # What is left has another digest, or is damaged: `decode` says how.
        while position < end and len(entries) < most:
            entry_id, start = first_entry_id + len(entries), position + _SIZE_BYTES
            stop = start + _unpack_size(data, position)[0] if start <= end else end + 1
            try:
                if stop > end:
                    raise self._mismatch(entry_id, "its bytes end in the middle")
                entries.append(self.decode(data[start:stop], entry_id))
            except DigestMismatch as refused:
                mismatch = refused
                break
            position = stop
        return Decoded(entries, position - begin - len(entries) * (_SIZE_BYTES + self.overhead), mismatch)

    def _decode_crc32c(self, data: bytes, position: int, end: int, entry_id: int, most: int, entries: list[Entry]) -> int:
        """`decode_all` for the default digest, one loop without calls between functions: most of what it costs to catch up.

        Args:
            entries: where the good ones go; empty.

        Returns:
            where the first stands that is not good; else where they end.
        """
        parts, reached = _crc32c_parts(data, position, end, most)
        ledger_id = self.ledger_id
        append, new, value, extend = entries.append, _new_entry, _crc32c_value, _crc32c_extend
        for header, stored, payload in parts:
            its_ledger, its_id, last_add_confirmed, length = _unpack_header(header)
            if its_ledger != ledger_id or its_id != entry_id or extend(value(header), payload) != stored:
                return position + sum([_SIZE_BYTES + _CRC32C_START + len(entry.payload) for entry in entries])
            # As `Entry(...)` makes it, which takes longer.
            entry = new(Entry)
            entry.ledger_id = ledger_id
            entry.entry_id = entry_id
            entry.last_add_confirmed = last_add_confirmed
            entry.length = length
            entry.payload = payload
            append(entry)
            entry_id += 1
        return reached

    def encode_lac(self, last_add_confirmed: int) -> bytes:
        """The signed record of an explicit last add confirmed."""
        header = _LAC_RECORD.pack(self.ledger_id, last_add_confirmed)
        return header + self._digest(header, b"")

    def decode_lac(self, record: bytes | memoryview) -> int:
        """The last add confirmed in a signed record.

        Raises:
            DigestMismatch: too short, digest wrong, or another ledger's record. Ask another bookie.
        """
        record = bytes(record)
        end = _LAC_RECORD.size + self.digest_type.size
        where = f"explicit last-add-confirmed record of ledger {self.ledger_id}"
        if len(record) < end:
            raise DigestMismatch(f"{where}: {len(record)} bytes instead of {end}; ask another bookie")
        header = record[: _LAC_RECORD.size]
        if self._digest(header, b"") != record[_LAC_RECORD.size : end]:
            raise DigestMismatch(f"{where}: the {self.digest_type.name} digest does not match, or the password differs; ask another bookie")
        found_ledger, last_add_confirmed = _LAC_RECORD.unpack(header)
        if found_ledger != self.ledger_id:
            raise DigestMismatch(f"{where}: the bytes belong to ledger {found_ledger}; ask another bookie")
        return int(last_add_confirmed)

    def _mismatch(self, entry_id: int | None, what: str) -> DigestMismatch:
        name = "last entry" if entry_id is None else f"entry {entry_id}"
        return DigestMismatch(f"ledger {self.ledger_id}, {name}: {what}; read another replica and scrub this one")


def _crc32c_parts(data: bytes, position: int, end: int, most: int) -> tuple[Iterable[tuple[bytes, int, bytes]], int]:
    """Header, digest and payload of each of at most `most` entries behind their sizes, and where they end: before one that cannot be."""
    if end - position >= _SIZE_BYTES + _CRC32C_START:
        size = _unpack_size(data, position)[0]
        step = _SIZE_BYTES + size
        count = min((end - position) // step, most)
        stop = position + count * step
        # Each byte of the size is the same for all of them.
        if size >= _CRC32C_START and all(data[at:stop:step] == data[at : at + 1] * count for at in range(position, position + _SIZE_BYTES)):
            # They are taken apart by an iterator inside the interpreter.
            return Struct(f">4x32sI{size - _CRC32C_START}s").iter_unpack(memoryview(data)[position:stop]), stop
    found: list[tuple[bytes, int, bytes]] = []
    while position + _SIZE_BYTES + _CRC32C_START <= end and len(found) < most:
        size, header, stored = _unpack_sized_crc32c_head(data, position)
        stop = position + _SIZE_BYTES + size
        if size < _CRC32C_START or stop > end:
            break
        found.append((header, stored, data[position + _SIZE_BYTES + _CRC32C_START : stop]))
        position = stop
    return found, position


def _has_right_crc32c(body: bytes) -> bool:
    if len(body) < _CRC32C_START:
        return False
    header, stored = _unpack_crc32c_head(body)
    return bool(_crc32c_extend(_crc32c_value(header), body[_CRC32C_START:]) == stored)


class DigestVerifier:
    """Checks digests alone, for whoever stores entries of a ledger without reading them."""

    __slots__ = ("_digest", "_start", "digest_type", "is_right")

    def __init__(self, digest_type: DigestType, password: bytes) -> None:
        self.digest_type = DigestType(digest_type)
        self._digest = _digest_function(self.digest_type, password)
        self._start = HEADER_BYTES + self.digest_type.size
        self.is_right: Callable[[bytes], bool] = _has_right_crc32c if self.digest_type is DigestType.CRC32C else self.verify
        """`verify` in the shortest way, for whoever has entries of several ledgers in turn; `verify_all` is for many of one."""

    def verify(self, body: bytes | bytearray | memoryview) -> bool:
        """True when the digest inside a complete entry matches its header and payload."""
        body = bytes(body)
        start = self._start
        return len(body) >= start and self._digest(body[:HEADER_BYTES], body[start:]) == body[HEADER_BYTES:start]

    def verify_lac(self, record: bytes) -> bool:
        """True when the digest inside a record of an explicit last add confirmed matches it."""
        signed = _LAC_RECORD.size
        end = signed + self.digest_type.size
        return len(record) >= end and self._digest(record[:signed], b"") == record[signed:end]

    def verify_all(self, bodies: Sequence[bytes | bytearray | memoryview]) -> bool:
        """True when `verify` holds for every one: one loop without calls between functions, since this is most of what an add costs."""
        if self.digest_type is not DigestType.CRC32C:
            return all(map(self.verify, bodies))
        start, value, extend, unpack = self._start, _crc32c_value, _crc32c_extend, _unpack_crc32c_head
        for body in bodies:
            if len(body) < start:
                return False
            header, stored = unpack(body)
            payload = body[start:]
            # The library takes only `bytes`.
            if extend(value(header), payload if type(payload) is bytes else bytes(payload)) != stored:
                return False
        return True
