"""Prints the blocks of an entry log, also of a damaged one and of one in use. Reads only.

Memory: the table of one run, one entry, and one state record. Tables of states and footers are read in pieces.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from triplicate.bookie.core.checksum import crc32c_of
from triplicate.bookie.core.entry_log_format import (
    BLOCK_HEADER,
    BLOCK_HEADER_BYTES,
    BLOCK_MAGIC,
    MAX_RUN_SPAN,
    SEARCH_BYTES,
    SIZE,
    TABLE_ROW,
    TRAILER,
    BlockInfo,
    BlockType,
    EntryLogScanner,
    decode_run_table,
    split_entry,
)
from triplicate.bookie.core.file_header import ENTRY_LOG_MAGIC, HEADER_BYTES, decode_file_header
from triplicate.bookie.core.ledger_data import LedgerData, decode_state
from triplicate.bookie.offline.dump_lines import DumpChoice, DumpLine, LineKind, damage_line, entry_line, refuse_foreign_file
from triplicate.bookie.offline.journal_dump import state_line
from triplicate.errors import CorruptionError, FormatError
from triplicate.runtime import Disk, File

PIECE_BYTES = 1024 * 1024
"""Bytes of a table that are read at a time."""
RECORD_BYTES_MAX = 1024 * 1024
"""A longer state record is damage."""
_CRC = struct.Struct(">I")
_LENGTH = struct.Struct(">I")
UNFINISHED = "no whole block begins here, and none follows: an unfinished write of a flush, or damage"


def dump_entry_log(disk: Disk, path: str, choice: DumpChoice) -> Iterator[DumpLine]:
    """The lines of one log, in the order of their offsets.

    Raises:
        FormatError: of an Apache bookie or a newer release. CorruptionError: nothing says that it is an entry log. OSError.
    """
    file = disk.open(path, readonly=True)
    try:
        yield from _EntryLogDump(file, path, choice).lines()
    finally:
        file.close()


class _EntryLogDump:
    def __init__(self, file: File, path: str, choice: DumpChoice) -> None:
        self._file = file
        self._path = path
        self._choice = choice
        self._size = file.size()
        """At the beginning; a running bookie may append meanwhile."""
        self._scanner = EntryLogScanner(file.pread, self._size, path)

    def lines(self) -> Iterator[DumpLine]:
        header = self._file.pread(HEADER_BYTES, 0)
        refuse_foreign_file(header, self._path)
        try:
            identity = decode_file_header(header, ENTRY_LOG_MAGIC, self._path)
        except CorruptionError as error:
            if self._next_block(HEADER_BYTES) is None:
                raise
            yield damage_line(0, HEADER_BYTES, str(error))
        else:
            facts = {
                "number": identity.number,
                "bookie_id": identity.bookie_id,
                "instance_id": identity.instance_id,
                "incarnation": identity.incarnation,
                "bytes": self._size,
            }
            yield DumpLine(LineKind.HEADER, 0, facts)
        yield from self._blocks()

    def _blocks(self) -> Iterator[DumpLine]:
        offset = HEADER_BYTES
        while offset < min(self._size, self._choice.end):
            try:
                block = self._whole_block(offset)
            except (CorruptionError, FormatError) as error:
                following = self._next_block(offset + 1)
                yield damage_line(offset, following, str(error) if following is not None else f"{UNFINISHED} ({error})")
                if following is None:
                    return
                offset = following
                continue
            if offset >= self._choice.start:
                yield from self._block_lines(block)
            offset = block.end
            if block.type is BlockType.FOOTER:
                yield from self._trailer_lines(offset)
                return
        if offset >= self._size:
            yield DumpLine(LineKind.END, offset, {"reason": "end of the file, without a footer"})

    def _whole_block(self, offset: int) -> BlockInfo:
        """The block at `offset`, with its checksum verified. Raises CorruptionError, FormatError."""
        block = self._scanner.described(offset)
        if block.type is BlockType.RUN and block.table_bytes > TABLE_ROW.size * MAX_RUN_SPAN:
            raise CorruptionError(f"{self._path}: the run at byte {offset} has a table of {block.table_bytes} bytes")
        head = self._file.pread(BLOCK_HEADER_BYTES, offset)
        value = crc32c_of((head[: BLOCK_HEADER.size],))
        for position in range(0, block.table_bytes, PIECE_BYTES):
            size = min(PIECE_BYTES, block.table_bytes - position)
            value = crc32c_of((self._file.pread(size, block.table_offset + position),), value)
        if value != _CRC.unpack_from(head, BLOCK_HEADER.size)[0]:
            raise CorruptionError(f"{self._path}: the block at byte {offset} fails its checksum")
        flags = BLOCK_HEADER.unpack_from(head)[2]
        if flags:
            raise FormatError(f"{self._path}: the block at byte {offset} has flags {flags:#x} that this release does not know")
        return block

    def _next_block(self, offset: int) -> int | None:
        """Where the first whole block at `offset` or behind it begins."""
        overlap = len(BLOCK_MAGIC) - 1
        for position in range(offset, self._size, SEARCH_BYTES):
            chunk = self._file.pread(SEARCH_BYTES + overlap, position)
            found = chunk.find(BLOCK_MAGIC)
            while found >= 0:
                try:
                    return self._whole_block(position + found).offset
                except (CorruptionError, FormatError):
                    found = chunk.find(BLOCK_MAGIC, found + 1)
        return None

    def _block_lines(self, block: BlockInfo) -> Iterator[DumpLine]:
        choice = self._choice
        if block.type is BlockType.RUN:
            if not choice.holds(block.ledger_id, block.first, block.last):
                return
            facts: dict[str, object] = {
                "ledger": block.ledger_id,
                "first": block.first,
                "last": block.last,
                "count": block.count,
                "body_bytes": block.body_bytes,
            }
        else:
            facts = {"count": block.count, "table_bytes": block.table_bytes}
        if block.type is BlockType.RUN or not choice.is_narrowed:
            yield DumpLine(LineKind.BLOCK, block.offset, {"type": block.type.name.lower(), "flush": block.flush_number, **facts})
        if not choice.entries and not choice.is_narrowed:
            return
        if block.type is BlockType.RUN:
            yield from self._entries(block)
        elif block.type is BlockType.STATES and not choice.is_by_entry:
            yield from self._states(block)

    def _entries(self, run: BlockInfo) -> Iterator[DumpLine]:
        try:
            table = decode_run_table(run, self._file.pread(run.table_bytes, run.table_offset), self._path)
        except CorruptionError as error:
            yield damage_line(run.offset, run.end, str(error))
            return
        for index, entry_id in enumerate(table.ids):
            if not self._choice.holds(run.ledger_id, entry_id, entry_id):
                continue
            start, size = table.extent(index)
            offset = run.body_offset + start
            try:
                if size < 0:
                    raise CorruptionError(f"{self._path}: the table gives entry {entry_id} {size} bytes")
                entry = split_entry(self._file.pread(SIZE.size + size, offset), size, self._path, offset)
            except CorruptionError as error:
                yield damage_line(offset, offset + SIZE.size + max(size, 0), str(error))
            else:
                yield entry_line(offset + SIZE.size, run.ledger_id, entry_id, entry, self._choice)

    def _states(self, block: BlockInfo) -> Iterator[DumpLine]:
        offset, end = block.table_offset, block.table_offset + block.table_bytes
        for _ in range(block.count):
            try:
                state, following = self._state_at(offset, end)
            except (CorruptionError, FormatError) as error:
                yield damage_line(offset, block.end, str(error))
                return
            if self._choice.holds_ledger(state.ledger_id):
                yield state_line(offset, state)
            offset = following

    def _state_at(self, offset: int, end: int) -> tuple[LedgerData, int]:
        length_bytes = self._file.pread(_LENGTH.size, offset)
        length = _LENGTH.unpack(length_bytes)[0] if len(length_bytes) == _LENGTH.size else RECORD_BYTES_MAX
        start = offset + _LENGTH.size
        if length >= RECORD_BYTES_MAX or start + length > end:
            raise CorruptionError(f"{self._path}: the state record at byte {offset} reaches beyond its block")
        return decode_state(self._file.pread(length, start)), start + length

    def _trailer_lines(self, offset: int) -> Iterator[DumpLine]:
        try:
            header = self._file.pread(HEADER_BYTES, 0)
            # A crash between the writes of footer and trailer leaves none, and a rest behind it is damage.
            if offset + TRAILER.size != self._size or self._scanner.footer(header) is None:
                yield damage_line(offset, None, "the footer has no trailer behind it")
                return
        except CorruptionError as error:
            yield damage_line(offset, None, str(error))
            return
        yield DumpLine(LineKind.END, offset, {"reason": "end of a finished log"})
