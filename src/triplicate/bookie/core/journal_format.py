"""Journal files: what is synced before anything is acknowledged. `docs/formats/journal.md` is the page for readers.

A file is a header block (`file_header`) and then groups, each at a multiple of 4 KiB. Group header, big-endian::

    0   4  magic "TPJG"
    4   2  type: 1 entries, 2 ledger states
    6   2  flags (0)
    8   8  file number
    16  8  sequence: 1 for the first group of this journal, then one more for each, across files
    24  4  length n of the body
    28  4  count of packets or records in the body
    32  4  CRC32C of bytes 0 to 31 and the body
    36  n  body

The body of an entries group is v2 add packets with their length prefix, as received over v2 or rebuilt from v3. The body of a states group
is a list of state records (`state`), empty where only a sync was asked for.

A group is written only after the sync of the one before it. So after a crash only the newest group can be torn: a damaged group
with a good, later-numbered one behind it was damaged after it had been synced, and replay says so instead of dropping what follows.

A file may be used again under a new number, over what it held (``"reused": true`` in the identity of its header). There every group,
and the header, is followed in the same write by `END_BLOCK`, which the next group overwrites: the groups end there, and
older bytes behind it do not count.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from triplicate.bookie.core.checksum import Buffer, crc32c_of
from triplicate.bookie.core.file_header import HEADER_BYTES
from triplicate.errors import CorruptionError, FormatError

ALIGNMENT = 4096
GROUP_MAGIC = b"TPJG"
GROUP_HEADER = struct.Struct(">4sHHQQII")
GROUP_CRC = struct.Struct(">I")
GROUP_HEADER_BYTES = GROUP_HEADER.size + GROUP_CRC.size
MAX_GROUP_BYTES = 64 * 1024 * 1024
"""Maximum size of a group's body; a greater length is damage."""
SEARCH_BYTES = 1024 * 1024
"""Bytes read at a time in the search for a good group behind a bad one."""

END_BLOCK = bytes(ALIGNMENT)
"""Follows the newest group of a reused file, unless the file ends there."""
REUSED_KEY = "reused"
"""Key of a header's identity: true in a reused file."""


class GroupType(IntEnum):
    ENTRIES = 1
    STATES = 2


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """End of a group: the next one of the same file begins at `offset`."""

    file_number: int
    offset: int
    sequence: int


@dataclass(frozen=True, slots=True)
class JournalGroup:
    type: GroupType
    file_number: int
    sequence: int
    count: int
    offset: int
    body: bytes

    @property
    def end(self) -> GroupPosition:
        return GroupPosition(self.file_number, self.offset + padded(GROUP_HEADER_BYTES + len(self.body)), self.sequence)


@dataclass(frozen=True, slots=True)
class TornTail:
    """Bytes at the end of the last file that are no whole group: a write that was never acknowledged."""

    path: str
    offset: int


def padded(size: int) -> int:
    """`size` rounded up to a multiple of `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def encode_group(kind: GroupType, file_number: int, sequence: int, count: int, body: Sequence[Buffer]) -> list[Buffer]:
    """The buffers of one group: header, `body` unchanged, zeros up to the next multiple of 4 KiB. Nothing is copied."""
    length = sum(map(len, body))
    if length > MAX_GROUP_BYTES:
        raise ValueError(f"a group of {length} bytes is over {MAX_GROUP_BYTES}")
    head = GROUP_HEADER.pack(GROUP_MAGIC, kind, 0, file_number, sequence, length, count)
    crc = crc32c_of((head, *body))
    return [head + GROUP_CRC.pack(crc), *body, END_BLOCK[: -(GROUP_HEADER_BYTES + length) % ALIGNMENT]]


class GroupScanner:
    """Reads the groups of one journal file in order.

    Args:
        read: ``read(size, offset)``, fewer bytes only at the end of the file.
        size: of the file.
        path: for messages.
        file_number: from the file's header. A group with another number is left from an earlier use of the file and does not count.
        after: the torn tail of the file before, if it has one; named in the message about missing groups.
        reused: the file may hold old groups behind its own.
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        size: int,
        path: str,
        file_number: int,
        *,
        after: TornTail | None = None,
        reused: bool = False,
    ) -> None:
        self._read = read
        self._size = size
        self._path = path
        self._file_number = file_number
        self._after = after
        self._reused = reused
        self.end = HEADER_BYTES
        """End of the last good group."""
        self.torn: TornTail | None = None
        """Set when the scan ended at bytes that are neither a group nor an end."""

    def groups(self, after_sequence: int | None, start: int = HEADER_BYTES) -> Iterator[JournalGroup]:
        """Every good group from `start` on, numbered from `after_sequence` + 1 (None: from any number).

        Raises:
            CorruptionError: a damaged or missing group with a good one behind it. FormatError: a group of an unknown type.
        """
        sequence = after_sequence
        offset = start
        while True:
            group = self.group_at(offset)
            if group is None:
                break
            if sequence is not None and group.sequence != sequence + 1:
                damaged = f" ({self._after.path} is damaged from byte {self._after.offset} on)" if self._after is not None else ""
                raise CorruptionError(
                    f"{self._path}: at byte {offset} group {group.sequence} follows group {sequence}: groups between them are missing"
                    f"{damaged}; the journal is damaged, so this bookie's copies must be restored from its peers"
                )
            sequence = group.sequence
            offset = group.end.offset
            self.end = offset
            yield group
        self.end = offset
        self._judge_tail(offset, sequence or 0)

    def is_group(self, offset: int) -> bool:
        """Whether a whole group of this file begins at `offset`."""
        return self.group_at(offset) is not None

    def _header_at(self, offset: int, block: bytes) -> tuple[int, int, int, int, int, int] | None:
        """(type, flags, sequence, length, count, crc) of a plausible header of this file, or None."""
        if len(block) < GROUP_HEADER_BYTES:
            return None
        magic, kind, flags, number, sequence, length, count = GROUP_HEADER.unpack_from(block)
        if magic != GROUP_MAGIC or number != self._file_number or length > MAX_GROUP_BYTES:
            return None
        if offset + GROUP_HEADER_BYTES + length > self._size:
            return None
        return kind, flags, sequence, length, count, GROUP_CRC.unpack_from(block, GROUP_HEADER.size)[0]

    def group_at(self, offset: int) -> JournalGroup | None:
        """The whole group of this file that begins at `offset`, or None. Raises FormatError: it is of an unknown type."""
        block = self._read(GROUP_HEADER_BYTES, offset)
        header = self._header_at(offset, block)
        if header is None:
            return None
        kind, flags, sequence, length, count, crc = header
        body = self._read(length, offset + GROUP_HEADER_BYTES)
        if len(body) != length or crc32c_of((block[: GROUP_HEADER.size], body)) != crc:
            return None
        if kind not in (GroupType.ENTRIES, GroupType.STATES) or flags:
            raise FormatError(
                f"{self._path}: at byte {offset} a group of type {kind}, flags {flags:#x}, unknown to this release: start a newer one"
            )
        return JournalGroup(GroupType(kind), self._file_number, sequence, count, offset, body)

    def _judge_tail(self, offset: int, sequence: int) -> None:
        """Judge the bytes behind the last good group. Only zeros, or the end block of a reused file: the end. A good group with a later
        number: corruption. Anything else: a torn tail.
        """
        any_data = False
        position = offset
        while position < self._size:
            chunk = self._read(min(SEARCH_BYTES, self._size - position), position)
            if not chunk:
                break
            if chunk.count(0) != len(chunk):
                any_data = True
                self._refuse_later_group(chunk, position, offset, sequence)
            position += len(chunk)
        if any_data and not (self._reused and self._is_end(offset)):
            self.torn = TornTail(self._path, offset)

    def _is_end(self, offset: int) -> bool:
        block = self._read(ALIGNMENT, offset)
        return block.count(0) == len(block)

    def _refuse_later_group(self, chunk: bytes, position: int, bad_offset: int, sequence: int) -> None:
        for start in range(0, len(chunk), ALIGNMENT):
            if chunk[start : start + 4] != GROUP_MAGIC:
                continue
            group = self.group_at(position + start)
            if group is not None and group.sequence > sequence:
                raise CorruptionError(
                    f"{self._path}: the group at byte {bad_offset} is damaged, but group {group.sequence} at byte {group.offset} behind "
                    "it is whole: this is no torn write; nothing was changed; restore the file, or replace this bookie's "
                    "disks and let its peers copy the entries back"
                )
