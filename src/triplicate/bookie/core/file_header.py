"""The first 4 KiB of every journal file and entry log: what the file is, which bookie wrote it, and in which format.

Big-endian::

    0   8  magic
    8   4  format version
    12  4  length n of the identity
    16  4  CRC32C of bytes 0 to 15 and the identity
    20  n  identity: UTF-8 JSON object with sorted keys
    ..     zeros up to 4096

The identity is JSON so that a later release may add keys without a new format version: a reader keeps to the keys it knows. The
version rises only when an older reader would misread the file.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field

from triplicate.bookie.core.checksum import crc32c
from triplicate.errors import CorruptionError, FormatError, WrongCluster

HEADER_BYTES = 4096
FORMAT_VERSION = 1
JOURNAL_MAGIC = b"TPJRNL\r\n"
ENTRY_LOG_MAGIC = b"TPENTR\r\n"
_KINDS = {JOURNAL_MAGIC: "a journal file", ENTRY_LOG_MAGIC: "an entry log"}

_PREFIX = struct.Struct(">8sII")
_CRC = struct.Struct(">I")
_CURE = "restore the file, or replace this bookie's disks and let its peers copy the entries back"


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """The writer of a file. `incarnation` counts the incarnations of the bookie's disks from 1; files of earlier releases have 0 for the
    first.
    """

    bookie_id: str
    instance_id: str
    number: int
    incarnation: int = 0
    extra: dict[str, object] = field(default_factory=dict)
    """Keys that this release does not know; kept unchanged."""


def encode_file_header(magic: bytes, identity: FileIdentity) -> bytes:
    """The header block, `HEADER_BYTES` long."""
    fields = {
        **identity.extra,
        "bookie_id": identity.bookie_id,
        "incarnation": identity.incarnation,
        "instance_id": identity.instance_id,
        "number": identity.number,
    }
    body = json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    prefix = _PREFIX.pack(magic, FORMAT_VERSION, len(body))
    block = prefix + _CRC.pack(crc32c(prefix, body)) + body
    if len(block) > HEADER_BYTES:
        raise FormatError(f"the identity of a file takes {len(block)} bytes, over {HEADER_BYTES}: choose a shorter bookie id")
    return block.ljust(HEADER_BYTES, b"\0")


def decode_file_header(block: bytes, magic: bytes, path: str) -> FileIdentity:
    """Check and read a header block.

    Args:
        block: the first `HEADER_BYTES` of the file.
        path: for messages.

    Raises:
        CorruptionError: damaged, or not such a file. FormatError: written by a newer release.
    """
    start = _PREFIX.size + _CRC.size
    if len(block) < HEADER_BYTES or block[:8] != magic:
        raise CorruptionError(f"{path}: no header of the kind {magic[:6].decode()} at the beginning of the file: {_CURE}")
    _, version, length = _PREFIX.unpack_from(block)
    body = block[start : start + length]
    crc = _CRC.unpack_from(block, _PREFIX.size)[0]
    if len(body) != length or crc != crc32c(block[: _PREFIX.size], body) or any(block[start + length :]):
        raise CorruptionError(f"{path}: the file header fails its checksum: {_CURE}")
    if version != FORMAT_VERSION:
        raise FormatError(
            f"{path}: written in format {version}, this release knows {FORMAT_VERSION}: start the release that wrote it, or a newer one"
        )
    fields = json.loads(body)
    known = {key: fields.pop(key) for key in ("bookie_id", "instance_id", "number", "incarnation")}
    return FileIdentity(known["bookie_id"], known["instance_id"], known["number"], known["incarnation"], fields)


def check_owner(found: FileIdentity, ours: FileIdentity, number: int | None, magic: bytes, path: str) -> None:
    """Check that a file belongs to this bookie and has its original name.

    Args:
        ours: the bookie's own identity, with any number.
        number: from the file's name; None if it need not match the header.
        magic: the kind of file; used with the path in messages.

    Raises:
        WrongCluster: another bookie wrote it. CorruptionError: it was renamed.
    """
    if found.instance_id != ours.instance_id or found.bookie_id != ours.bookie_id:
        raise WrongCluster(
            f"{path}: {_KINDS[magic]} of bookie {found.bookie_id} in cluster {found.instance_id}, not of {ours.bookie_id} in "
            f"{ours.instance_id}: move the file to the bookie that wrote it, or give this bookie the directory that is its own"
        )
    if number is not None and found.number != number:
        raise CorruptionError(f"{path}: the file says that it is number {found.number}: it was renamed; give it its name back")
