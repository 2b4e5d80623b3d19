"""The file of a backup that holds batches of a log. Pure; `docs/formats/backup.md` fixes the bytes.

The file header is magic ``TRBL``, version u8 and three zero bytes. A frame for each batch follows the header. A frame has: length of the
rest of the frame u32, first offset u64, epoch u64, length of the preamble u32, number of records u32, the preamble, and the records, each
as length u32 and bytes. Integers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from triplicate.errors import BackupDamaged, FormatError

MAGIC = b"TRBL"
VERSION = 1
_START = struct.Struct("<4sB3x")
START = _START.pack(MAGIC, VERSION)
_LENGTH = struct.Struct("<I")
_FRAME = struct.Struct("<QQII")
FRAME_SIZE_MAX = 256 * 1024 * 1024
"""Bytes of the largest frame that is read; an entry of a log is much smaller."""


class BatchFrame(NamedTuple):
    """One batch of a log."""

    first_offset: int
    epoch: int
    preamble: bytes
    records: Sequence[bytes]

    @property
    def end(self) -> int:
        return self.first_offset + len(self.records)


def encode_frame(frame: BatchFrame) -> bytes:
    parts = [_FRAME.pack(frame.first_offset, frame.epoch, len(frame.preamble), len(frame.records)), frame.preamble]
    for record in frame.records:
        parts += (_LENGTH.pack(len(record)), record)
    body = b"".join(parts)
    return _LENGTH.pack(len(body)) + body


class RecordFileReader:
    """Cuts the bytes of such a file into batches, and checks that each follows the one before.

    Args:
        place: names the file in errors.
        position: where its batches begin.
    """

    def __init__(self, place: str, position: int) -> None:
        self._place = place
        self.position = position
        """Offset after the last batch."""
        self._buffer = bytearray()
        self._started = False

    def feed(self, data: bytes) -> list[BatchFrame]:
        """The batches that are complete with the next bytes of the file.

        Raises:
            BackupDamaged: a batch is missing or damaged. FormatError: a later release wrote the file.
        """
        self._buffer += data
        begin = 0
        if not self._started:
            if len(self._buffer) < len(START):
                return []
            self._check_start()
            begin = len(START)
        frames: list[BatchFrame] = []
        while len(self._buffer) - begin >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, begin)
            if length > FRAME_SIZE_MAX:
                raise BackupDamaged(f"{self._place} has a batch of {length} bytes behind position {self.position}")
            end = begin + _LENGTH.size + length
            if end > len(self._buffer):
                break
            frames.append(self._frame(bytes(self._buffer[begin + _LENGTH.size : end])))
            begin = end
        del self._buffer[:begin]
        return frames

    def finish(self, end: int) -> None:
        """The file has ended. Raises BackupDamaged: within a batch, or at another position."""
        if self._buffer or not self._started or self.position != end:
            raise BackupDamaged(
                f"{self._place} ends at position {self.position}, with {len(self._buffer)} bytes too many; it belongs to {end}"
            )

    def _check_start(self) -> None:
        magic, version = _START.unpack_from(self._buffer)
        if magic != MAGIC:
            raise BackupDamaged(f"{self._place} holds no batches of a log: it begins with {magic!r}")
        if version != VERSION:
            raise FormatError(f"{self._place} is of version {version}; this release reads version {VERSION}: use the release that wrote it")
        self._started = True

    def _frame(self, body: bytes) -> BatchFrame:
        try:
            first_offset, epoch, preamble_size, count = _FRAME.unpack_from(body)
            position = _FRAME.size + preamble_size
            records: list[bytes] = []
            for _ in range(count):
                (size,) = _LENGTH.unpack_from(body, position)
                position += _LENGTH.size
                records.append(body[position : position + size])
                position += size
        except struct.error as error:
            raise BackupDamaged(f"{self._place}: the batch behind position {self.position} is cut off") from error
        if position != len(body):
            raise BackupDamaged(f"{self._place}: the batch behind position {self.position} has another length than it says")
        if first_offset != self.position or not records:
            raise BackupDamaged(f"{self._place} continues at position {first_offset}, position {self.position} belongs there")
        self.position += count
        return BatchFrame(first_offset, epoch, body[_FRAME.size : _FRAME.size + preamble_size], records)
