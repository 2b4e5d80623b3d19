"""The entries of a snapshot's ledger: one header, the content in chunks, one trailer. Pure.

Every entry begins with magic ``TRSN``, version u8, kind u8, codec u8, flags u8, and two u32 that belong to chunks: index and raw length.
Header and trailer are JSON with sorted keys. Little-endian. `docs/formats/snapshot.md` fixes the bytes. The snapshots of an encrypted log
are encrypted, every entry whole; the functions that encode and decode know entries in plain text.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triplicate.errors import FormatError, SnapshotDamaged
from triplicate.log.core import encryption
from triplicate.log.core.compression import CODECS, Compressor, decompress
from triplicate.log.core.snapshot_list import LEDGER_FORMAT, Snapshot

MAGIC = b"TRSN"
PREFIX = struct.Struct("<4sBBBBII")
HEADER, CHUNK, TRAILER = 1, 2, 3
_FLAGS_AT = 7
_ENCRYPTED = 1
_KINDS = {HEADER: "header", CHUNK: "chunk", TRAILER: "trailer"}
CHUNK_BYTES = 1024 * 1024
"""Content of one chunk; only the last is shorter."""


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    """The content of the first entry. Fields as in `Snapshot`.

    Args:
        log_id: the log that the snapshot belongs to.
        compression: how chunks may be compressed; each chunk names its codec.
        facts: small JSON object that the state machine needs before it loads the content.
    """

    snapshot_id: str
    log_id: str
    position: int
    epoch: int
    time_ms: int
    machine: str
    content: str
    identity: str
    node: str
    compression: str
    facts: Mapping[str, int | str]


_HEADER_FIELDS: tuple[tuple[str, str, type], ...] = (
    ("id", "snapshot_id", str),
    ("log", "log_id", str),
    ("position", "position", int),
    ("epoch", "epoch", int),
    ("time", "time_ms", int),
    ("machine", "machine", str),
    ("content", "content", str),
    ("identity", "identity", str),
    ("node", "node", str),
    ("compression", "compression", str),
    ("facts", "facts", dict),
)


@dataclass(frozen=True, slots=True)
class Trailer:
    """The content of the last entry; a snapshot without it is incomplete.

    Args:
        digest: over the content; of an encrypted snapshot over the payloads of its chunks, since the list has it in clear.
        header: over the payload of the first entry.
    """

    chunks: int
    size_bytes: int
    digest: str
    header: str


def _json(kind: int, value: Mapping[str, Any]) -> bytes:
    body = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return PREFIX.pack(MAGIC, LEDGER_FORMAT, kind, 0, 0, 0, len(body)) + body


def encode_header(header: SnapshotHeader) -> bytes:
    """The first entry's payload."""
    return _json(HEADER, {key: getattr(header, name) for key, name, _ in _HEADER_FIELDS})


def encode_trailer(trailer: Trailer) -> bytes:
    """The last entry's payload."""
    return _json(TRAILER, {"bytes": trailer.size_bytes, "chunks": trailer.chunks, "digest": trailer.digest, "header": trailer.header})


def encode_chunk(index: int, content: bytes, compressor: Compressor) -> bytes:
    """The payload of chunk `index`, from 0."""
    codec, stored = compressor.compress(content)
    return PREFIX.pack(MAGIC, LEDGER_FORMAT, CHUNK, codec, 0, index, len(content)) + stored


def encrypt(encryptor: encryption.LedgerEncryptor | None, payload: bytes, entry_id: int) -> bytes:
    """The payload of an entry as it is stored: encrypted where there is an encryptor."""
    if encryptor is None:
        return payload
    prefix = b"".join((payload[:_FLAGS_AT], bytes((_ENCRYPTED,)), payload[_FLAGS_AT + 1 : PREFIX.size]))
    return encryptor.encrypt(prefix, prefix, memoryview(payload)[PREFIX.size :], entry_id)


def decrypt(decryptor: encryption.LedgerDecryptor | None, payload: bytes, ledger_id: int, entry_id: int) -> bytes:
    """Undo `encrypt`.

    Raises:
        LogKeyMissing, ConfigError: the key cannot be had. EntryNotAuthentic: the entry was changed or moved, or is in plain text although
        the log is encrypted. FormatError: it is encrypted although the log is not, or a later release wrote it.
    """
    begin = PREFIX.size + encryption.BLOCK_SIZE
    is_encrypted = len(payload) >= begin and payload[_FLAGS_AT] & _ENCRYPTED
    if decryptor is None:
        if is_encrypted:
            raise FormatError(f"entry {entry_id} of ledger {ledger_id} is encrypted, but the log of its snapshot is not")
        return payload
    if not is_encrypted:
        raise decryptor.not_authentic(ledger_id, entry_id, "is in plain text, although the log of its snapshot is encrypted")
    block = encryption.decode_block(payload, PREFIX.size)
    body = decryptor.decrypt(block, payload[: PREFIX.size], memoryview(payload)[begin:], ledger_id, entry_id)
    if (block.ledger_id, block.place) != (ledger_id, entry_id):
        raise decryptor.not_authentic(ledger_id, entry_id, f"was moved: it is entry {block.place} of ledger {block.ledger_id}")
    return b"".join((payload[:_FLAGS_AT], b"\0", payload[_FLAGS_AT + 1 : PREFIX.size], body))


def digest_text(digest: Any) -> str:
    """The digest of content as text, as it is in lists and trailers. `digest` is a SHA-256 object of hashlib."""
    return f"sha256:{digest.hexdigest()}"


def _split(payload: bytes, expected: int, place: str) -> tuple[int, int, int, memoryview]:
    """Codec, index, raw length and body of an entry of one kind."""
    if len(payload) < PREFIX.size:
        raise SnapshotDamaged(f"{place} has {len(payload)} bytes and is no entry of a snapshot")
    magic, version, kind, codec, reserved, index, length = PREFIX.unpack_from(payload)
    if magic != MAGIC:
        raise SnapshotDamaged(f"{place} is no entry of a snapshot: it begins with {magic!r}")
    if version != LEDGER_FORMAT or reserved or codec not in CODECS:
        raise FormatError(
            f"{place} has format {version}, codec {codec}, flags {reserved}; this release does not know them: upgrade Triplicate"
        )
    if kind != expected:
        raise SnapshotDamaged(f"{place} is a {_KINDS.get(kind, kind)}, a {_KINDS[expected]} belongs there")
    return codec, index, length, memoryview(payload)[PREFIX.size :]


def _object(payload: bytes, kind: int, place: str) -> dict[str, Any]:
    _, _, length, body = _split(payload, kind, place)
    try:
        value = json.loads(bytes(body))
    except ValueError as error:
        raise SnapshotDamaged(f"{place} is not JSON: {error}") from error
    if len(body) != length or not isinstance(value, dict):
        raise SnapshotDamaged(f"{place} is not one JSON object of {length} bytes")
    return value


def decode_header(payload: bytes, place: str) -> SnapshotHeader:
    """Read the first entry.

    Args:
        place: names the entry in errors.

    Raises:
        SnapshotDamaged: no writer writes such an entry. FormatError: a later release wrote it.
    """
    value = _object(payload, HEADER, place)
    for key, _, kind in _HEADER_FIELDS:
        if type(value.get(key)) is not kind:
            raise SnapshotDamaged(f"{place} lacks field {key} or has a wrong one")
    return SnapshotHeader(**{name: value[key] for key, name, _ in _HEADER_FIELDS})


def decode_trailer(payload: bytes, place: str) -> Trailer:
    """Read the last entry. Raises as `decode_header`."""
    value = _object(payload, TRAILER, place)
    try:
        return Trailer(int(value["chunks"]), int(value["bytes"]), str(value["digest"]), str(value["header"]))
    except (KeyError, TypeError, ValueError) as error:
        raise SnapshotDamaged(f"{place} lacks a field or has a wrong one: {error!r}") from error


def decode_chunk(payload: bytes, index: int, place: str) -> memoryview:
    """The content of chunk `index`. Raises as `decode_header`, and CorruptionError when it does not unpack."""
    codec, found, length, body = _split(payload, CHUNK, place)
    if found != index:
        raise SnapshotDamaged(f"{place} is chunk {found}, chunk {index} belongs there")
    if length > CHUNK_BYTES:
        raise SnapshotDamaged(f"{place} has {length} bytes of content; a chunk has at most {CHUNK_BYTES}")
    return decompress(codec, body, length)


class ContentCheck:
    """Compares a snapshot's entries with its listed values while they are read. Not for several threads at once.

    Args:
        decryptor: None where the log is not encrypted.
    """

    def __init__(self, snapshot: Snapshot, decryptor: encryption.LedgerDecryptor | None = None) -> None:
        self._snapshot = snapshot
        self._decryptor = decryptor
        self._header = ""
        self._digest = hashlib.sha256()
        self._chunks = 0
        self._size_bytes = 0

    def header(self, payload: bytes) -> SnapshotHeader:
        """Check the first entry. Raises as `decode_header` and `decrypt`."""
        listed = self._snapshot
        self._header = digest_text(hashlib.sha256(payload))
        header = decode_header(self._plain(payload, 0), self._place("its header"))
        for field in ("snapshot_id", "position", "epoch", "machine", "content", "identity"):
            if getattr(header, field) != getattr(listed, field):
                raise SnapshotDamaged(
                    f"{self._place('its header')} says {field} {getattr(header, field)!r}, the list says {getattr(listed, field)!r}"
                )
        return header

    def chunk(self, payload: bytes) -> memoryview:
        """The content of the next chunk. Raises as `decode_chunk` and `decrypt`."""
        content = decode_chunk(self._plain(payload, self._chunks + 1), self._chunks, self._place(f"chunk {self._chunks}"))
        self._digest.update(content if self._decryptor is None else payload)
        self._chunks += 1
        self._size_bytes += len(content)
        return content

    def trailer(self, payload: bytes) -> None:
        """Check the last entry, and all content that came before.

        Raises:
            SnapshotDamaged: the content differs from the list. As `decrypt`.
        """
        payload = self._plain(payload, self._chunks + 1)
        trailer, listed = decode_trailer(payload, self._place("its trailer")), self._snapshot
        if trailer.header != self._header:
            raise SnapshotDamaged(f"{self._place('its header')} has {self._header}, its trailer says {trailer.header}")
        found = (self._size_bytes, self._chunks, digest_text(self._digest))
        in_trailer, in_list = (trailer.size_bytes, trailer.chunks, trailer.digest), (listed.size_bytes, listed.chunks, listed.digest)
        for source, said in (("its trailer", in_trailer), ("the list", in_list)):
            if said != found:
                raise SnapshotDamaged(
                    "snapshot {} holds {} bytes in {} chunks with {}; {} says {} in {} with {}".format(
                        listed.snapshot_id, *found, source, *said
                    )
                )

    def _plain(self, payload: bytes, entry_id: int) -> bytes:
        return decrypt(self._decryptor, payload, self._snapshot.ledger_id, entry_id)

    def _place(self, what: str) -> str:
        return f"snapshot {self._snapshot.snapshot_id} (ledger {self._snapshot.ledger_id}): {what}"
