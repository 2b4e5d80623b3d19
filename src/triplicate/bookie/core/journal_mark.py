"""The journal mark: everything up to here is durable in entry logs and index, so replay starts behind it.

One small file per journal directory, written beside and renamed into place. Big-endian::

    0   8  magic "TPMARK\\r\\n"
    8   4  format version
    12  8  file number
    20  8  offset: where the next group of that file begins
    28  8  sequence of the last group covered
    36  8  flush number: the index must have seen this flush, else it is older than the mark
    44  4  CRC32C of bytes 0 to 43
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from triplicate.bookie.core.checksum import crc32c
from triplicate.errors import CorruptionError, FormatError

MARK_MAGIC = b"TPMARK\r\n"
MARK_VERSION = 1
_MARK = struct.Struct(">8sIQQQQ")
_CRC = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class JournalMark:
    file_number: int
    offset: int
    sequence: int
    flush_number: int


def encode_mark(mark: JournalMark) -> bytes:
    head = _MARK.pack(MARK_MAGIC, MARK_VERSION, mark.file_number, mark.offset, mark.sequence, mark.flush_number)
    return head + _CRC.pack(crc32c(head))


def decode_mark(data: bytes, path: str) -> JournalMark:
    """Raises CorruptionError (damaged), FormatError (newer)."""
    if len(data) != _MARK.size + _CRC.size or data[:8] != MARK_MAGIC or _CRC.unpack_from(data, _MARK.size)[0] != crc32c(data[: _MARK.size]):
        raise CorruptionError(
            f"{path}: the journal mark fails its checksum: delete the file, and everything that the journal still holds is replayed"
        )
    _, version, number, offset, sequence, flush = _MARK.unpack_from(data)
    if version != MARK_VERSION:
        raise FormatError(f"{path}: mark of format {version}, this release knows {MARK_VERSION}: start the release that wrote it")
    return JournalMark(number, offset, sequence, flush)
