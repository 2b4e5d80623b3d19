"""The format of entry logs, the files of flushed entries. `docs/formats/entry-log.md` explains it.

A log is a header block (`file_header`) and then blocks one after another: runs, ledger states, and at the end of a finished log a
footer. Every block begins with one header, big-endian::

    0   4  magic "TPEB"
    4   2  type: 1 run, 2 ledger states, 3 footer
    6   2  flags (0)
    8   8  number of the flush that wrote it first; compaction keeps it, so "newest" survives a move
    16  8  ledger (run), else 0
    24  8  first entry id (run), else 0
    32  8  last entry id (run), else 0
    40  4  count: entries, state records, or footer rows
    44  4  length t of the table
    48  8  length b of the body
    56  4  CRC32C of bytes 0 to 55 and the table
    60  t  table
    ..  b  body (runs only): the entries, each as u32 size and entry, in the order of their ids

A run's table is count times (entry id i64, offset i64 of its u32 size, from the beginning of the body), by ascending id. The body is
the body of a v2 batch-read answer and has no checksum here: each entry carries its digest. The table of a states block is a list of
state records. The table of a footer is count times (block offset, type, flush, ledger, first, last, count, table length, body length),
and behind the footer stands a trailer of 20 bytes: magic "TPET", footer offset u64, CRC32C of the log's header block, CRC32C of these.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate

from triplicate.bookie.core.checksum import Buffer, crc32c
from triplicate.bookie.core.file_header import ENTRY_LOG_MAGIC, HEADER_BYTES, decode_file_header
from triplicate.bookie.core.ledger_data import LedgerData, encode_states
from triplicate.errors import CorruptionError, FormatError

BLOCK_MAGIC = b"TPEB"
TRAILER_MAGIC = b"TPET"
BLOCK_HEADER = struct.Struct(">4sHHQqqqIIQ")
_CRC = struct.Struct(">I")
BLOCK_HEADER_BYTES = BLOCK_HEADER.size + _CRC.size
TABLE_ROW = struct.Struct(">qq")
FOOTER_ROW = struct.Struct(">QHQqqqIIQ")
TRAILER = struct.Struct(">4sQII")
SIZE = struct.Struct(">I")
PIECE_BYTES = 64 * 1024
"""Approximate size of the pieces into which a run's body is joined."""
JOINED_BELOW_BYTES = 4096
"""Entries with a smaller average size are joined: a write of many small buffers costs more than copying them."""
MAX_RUN_SPAN = 16384
"""Bound on the span of a run's ids, so a look-up for an id finds its runs in a narrow range."""
MAX_RUN_BYTES = 32 * 1024 * 1024
"""Maximum size of a run's body (a single entry may be larger)."""
MAX_TABLE_BYTES = 1 << 30
SEARCH_BYTES = 1024 * 1024
"""Bytes read at a time in the search for a good block behind a bad one."""


class BlockType(IntEnum):
    RUN = 1
    STATES = 2
    FOOTER = 3


@dataclass(frozen=True, slots=True)
class BlockInfo:
    """One block's header and its place. The index stores exactly these fields of a run."""

    type: BlockType
    offset: int
    flush_number: int
    ledger_id: int
    first: int
    last: int
    count: int
    table_bytes: int
    body_bytes: int

    @property
    def table_offset(self) -> int:
        return self.offset + BLOCK_HEADER_BYTES

    @property
    def body_offset(self) -> int:
        return self.offset + BLOCK_HEADER_BYTES + self.table_bytes

    @property
    def end(self) -> int:
        return self.body_offset + self.body_bytes


@dataclass(frozen=True, slots=True)
class RunTable:
    """The checked table of one run: its entry ids and the offset of each entry's size field within the body."""

    ids: Sequence[int]
    offsets: Sequence[int]
    body_bytes: int

    def find(self, entry_id: int) -> tuple[int, int] | None:
        """(offset of the entry's size field in the body, size of the entry), or None when the run does not hold it."""
        index = bisect_left(self.ids, entry_id)
        if index == len(self.ids) or self.ids[index] != entry_id:
            return None
        return self.extent(index)

    def extent(self, index: int) -> tuple[int, int]:
        """As `find`, for the entry at `index` of the table."""
        end = self.offsets[index + 1] if index + 1 < len(self.offsets) else self.body_bytes
        return self.offsets[index], end - self.offsets[index] - SIZE.size


def encode_run(
    flush_number: int, ledger_id: int, entry_ids: Sequence[int], entries: Sequence[Buffer], offset: int
) -> tuple[bytes, Iterator[Buffer], BlockInfo]:
    """Encode one run: its header and table, its body in pieces, and its description. Loops run inside the interpreter, not per entry.

    Args:
        entry_ids: ascending, distinct, not empty, within `MAX_RUN_SPAN`.
        entries: as many.
        offset: where the block will stand in the log.
    """
    count = len(entry_ids)
    sizes = list(map(len, entries))
    table: list[int] = [0] * (2 * count)
    table[0::2] = entry_ids
    table[1::2] = [position + SIZE.size * index for index, position in enumerate(accumulate(sizes[:-1], initial=0))]
    body_bytes = sum(sizes) + SIZE.size * count
    packed = struct.pack(f">{len(table)}q", *table)
    info = BlockInfo(BlockType.RUN, offset, flush_number, ledger_id, entry_ids[0], entry_ids[-1], count, len(packed), body_bytes)
    return _header(info, packed) + packed, _body(sizes, entries, body_bytes // count), info


def _body(sizes: list[int], entries: Sequence[Buffer], mean_bytes: int) -> Iterator[Buffer]:
    """A run's body, encoded while it is written."""
    step = max(1, PIECE_BYTES // mean_bytes)
    for start in range(0, len(sizes), step):
        part = sizes[start : start + step]
        buffers: list[Buffer] = [b""] * (2 * len(part))
        buffers[0::2] = map(SIZE.pack, part)
        buffers[1::2] = entries[start : start + step]
        if mean_bytes < JOINED_BELOW_BYTES:
            yield b"".join(buffers)
        else:
            yield from buffers


def encode_states_block(flush_number: int, states: Iterable[LedgerData], offset: int) -> tuple[list[Buffer], BlockInfo]:
    table, count = encode_states(states)
    info = BlockInfo(BlockType.STATES, offset, flush_number, 0, 0, 0, count, len(table), 0)
    return [_header(info, table), table], info


def encode_footer(flush_number: int, blocks: Sequence[BlockInfo], offset: int, header_block: bytes) -> list[Buffer]:
    """The footer block and trailer of a finished log."""
    rows: list[bytes] = []
    for block in blocks:
        ids = block.ledger_id, block.first, block.last
        rows.append(FOOTER_ROW.pack(block.offset, block.type, block.flush_number, *ids, block.count, block.table_bytes, block.body_bytes))
    table = b"".join(rows)
    info = BlockInfo(BlockType.FOOTER, offset, flush_number, 0, 0, 0, len(blocks), len(table), 0)
    trailer = TRAILER.pack(TRAILER_MAGIC, offset, crc32c(header_block), 0)[:-4]
    return [_header(info, table), table, trailer + _CRC.pack(crc32c(trailer))]


def _header(info: BlockInfo, table: bytes) -> bytes:
    head = BLOCK_HEADER.pack(
        BLOCK_MAGIC,
        info.type,
        0,
        info.flush_number,
        info.ledger_id,
        info.first,
        info.last,
        info.count,
        info.table_bytes,
        info.body_bytes,
    )
    return head + _CRC.pack(crc32c(head, table))


class EntryLogScanner:
    """Reads the blocks of one entry log.

    Args:
        read: ``read(size, offset)``, fewer bytes only at the end of the file.
        size: of the file. path: for messages.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int, path: str) -> None:
        self._read = read
        self._size = size
        self._path = path

    def block(self, offset: int, known: BlockInfo | None = None) -> tuple[BlockInfo, bytes]:
        """The checked header and table at `offset`; with `known`, they must also agree with it.

        Raises:
            CorruptionError: damaged, or different from the index. FormatError: from a newer release.
        """
        want = BLOCK_HEADER_BYTES + (known.table_bytes if known is not None else 0)
        data = self._read(want, offset)
        info, flags = self._parse(data, offset)
        if known is None:
            data += self._read(info.table_bytes, offset + BLOCK_HEADER_BYTES)
        table = data[BLOCK_HEADER_BYTES:]
        crc = _CRC.unpack_from(data, BLOCK_HEADER.size)[0]
        if len(table) != info.table_bytes or crc32c(data[: BLOCK_HEADER.size], table) != crc:
            raise CorruptionError(f"{self._path}: the block at byte {offset} fails its checksum")
        if flags:
            raise FormatError(f"{self._path}: the block at byte {offset} has flags {flags:#x} that this release does not know")
        if known is not None and info != known:
            raise CorruptionError(f"{self._path}: the block at byte {offset} is not the one that the index names")
        return info, table

    def described(self, offset: int) -> BlockInfo:
        """The description in the header at `offset`, without a check of its checksum. Raises CorruptionError: it cannot be one."""
        return self._parse(self._read(BLOCK_HEADER_BYTES, offset), offset)[0]

    def _parse(self, data: bytes, offset: int) -> tuple[BlockInfo, int]:
        if len(data) < BLOCK_HEADER_BYTES or data[:4] != BLOCK_MAGIC:
            raise CorruptionError(f"{self._path}: no block begins at byte {offset}")
        _, kind, flags, flush, ledger, first, last, count, table_bytes, body_bytes = BLOCK_HEADER.unpack_from(data)
        if kind not in (BlockType.RUN, BlockType.STATES, BlockType.FOOTER) or table_bytes > MAX_TABLE_BYTES:
            raise CorruptionError(f"{self._path}: the block at byte {offset} is damaged (type {kind})")
        info = BlockInfo(BlockType(kind), offset, flush, ledger, first, last, count, table_bytes, body_bytes)
        if info.end > self._size:
            raise CorruptionError(f"{self._path}: the block at byte {offset} reaches beyond the end of the file")
        return info, flags

    def run_table(self, known: BlockInfo) -> RunTable:
        """The table of the run that the index describes as `known`. Raises CorruptionError."""
        _, table = self.block(known.offset, known)
        return decode_run_table(known, table, self._path)

    def scan(self, offset: int = HEADER_BYTES) -> Iterator[tuple[BlockInfo, bytes]]:
        """Every block from `offset` on, footer included, without reading bodies. Ends at the end of the log.

        Raises:
            CorruptionError: at bytes that are no block. The blocks yielded before are good.
        """
        while offset < self._size:
            info, table = self.block(offset)
            yield info, table
            if info.type is BlockType.FOOTER:
                return
            offset = info.end

    def good_block_behind(self, offset: int) -> BlockInfo | None:
        """The first whole block behind `offset`, where no block begins. If there is one, the bytes between were damaged, not torn."""
        overlap = len(BLOCK_MAGIC) - 1
        position = offset + 1
        while position < self._size:
            chunk = self._read(SEARCH_BYTES + overlap, position)
            found = chunk.find(BLOCK_MAGIC)
            while found >= 0:
                try:
                    return self.block(position + found)[0]
                except CorruptionError:
                    found = chunk.find(BLOCK_MAGIC, found + 1)
            position += SEARCH_BYTES
        return None

    def broken_block(self, offset: int) -> BlockInfo | None:
        """The description in the header of a broken block at `offset` with nothing whole behind it; None if there is no header.

        A write cut short by a loss of power leaves the header complete or missing. A single flipped bit is corrected, so that damage is
        not mistaken for a torn write.
        """
        data = self._read(BLOCK_HEADER_BYTES, offset)
        magic = int.from_bytes(data[:4], "big") ^ int.from_bytes(BLOCK_MAGIC, "big")
        if len(data) < BLOCK_HEADER_BYTES or magic.bit_count() > 1:
            return None
        _, kind, _, flush, ledger, first, last, count, table_bytes, body_bytes = BLOCK_HEADER.unpack(self._repaired(data, offset))
        found = BlockType(kind) if kind in tuple(BlockType) else BlockType.STATES
        return BlockInfo(found, offset, flush, ledger, first, last, count, table_bytes, body_bytes)

    def torn_runs(self, offset: int, end: int) -> list[BlockInfo]:
        """Descriptions of the broken runs that fill the range from `offset` to `end`; empty if headers do not cover it."""
        found: list[BlockInfo] = []
        while offset < end:
            block = self.broken_block(offset)
            if block is None or block.type is not BlockType.RUN:
                return []
            found.append(block)
            offset = block.end
        return found if offset == end else []

    def _repaired(self, data: bytes, offset: int) -> bytes:
        head, crc = data[: BLOCK_HEADER.size], _CRC.unpack_from(data, BLOCK_HEADER.size)[0]
        number = int.from_bytes(head, "big")
        for bit in range(8 * len(head)):
            before = (number ^ (1 << bit)).to_bytes(len(head), "big")
            table_bytes = BLOCK_HEADER.unpack(before)[8]
            if offset + BLOCK_HEADER_BYTES + table_bytes <= self._size:
                table = self._read(table_bytes, offset + BLOCK_HEADER_BYTES)
                if crc32c(before, table) == crc:
                    return before
        return head

    def listed(self, header_block: bytes) -> tuple[list[BlockInfo] | None, dict[str, CorruptionError]]:
        """The blocks of a good footer, else None; and the damaged parts, of ``entry_log_header`` and ``footer``.

        Raises:
            CorruptionError: the file header is damaged, and no footer identifies the file. FormatError: from a newer release.
        """
        damaged: dict[str, CorruptionError] = {}
        blocks = None
        try:
            decode_file_header(header_block, ENTRY_LOG_MAGIC, self._path)
        except CorruptionError as error:
            damaged["entry_log_header"] = error
        try:
            blocks = self.footer(None if damaged else header_block)
        except CorruptionError as error:
            damaged["footer"] = error
        if blocks is None and "entry_log_header" in damaged:
            raise damaged["entry_log_header"]
        return blocks, damaged

    def is_identified(self, known_bytes: int) -> bool:
        """Whether a log is identified without its file header: by its footer, or because all blocks up to `known_bytes` are whole."""
        try:
            if self.footer(None) is not None:
                return True
        except CorruptionError:
            return False
        offset = HEADER_BYTES
        try:
            while offset < known_bytes:
                offset = self.block(offset)[0].end
        except CorruptionError:
            return False
        return offset == known_bytes

    def footer(self, header_block: bytes | None) -> list[BlockInfo] | None:
        """The blocks in a finished log's footer, or None if the log has no trailer (it was not finished).

        Args:
            header_block: the file header, which the trailer's checksum covers; None: it is damaged.

        Raises:
            CorruptionError: there is a trailer, but it or the footer is damaged.
        """
        if self._size < HEADER_BYTES + TRAILER.size:
            return None
        trailer = self._read(TRAILER.size, self._size - TRAILER.size)
        magic, offset, header_crc, crc = TRAILER.unpack(trailer)
        if crc32c(trailer[:-4]) != crc:
            if magic == TRAILER_MAGIC:
                raise CorruptionError(f"{self._path}: the trailer fails its checksum")
            return None
        if header_block is not None and header_crc != crc32c(header_block):
            raise CorruptionError(f"{self._path}: header and trailer of the log do not belong together")
        info, table = self.block(offset)
        if info.type is not BlockType.FOOTER or info.count * FOOTER_ROW.size != len(table) or info.end + TRAILER.size != self._size:
            raise CorruptionError(f"{self._path}: the footer at byte {offset} contradicts the trailer")
        return [
            BlockInfo(BlockType(kind), start, flush, ledger, first, last, count, table_bytes, body_bytes)
            for start, kind, flush, ledger, first, last, count, table_bytes, body_bytes in FOOTER_ROW.iter_unpack(table)
        ]


def decode_run_table(info: BlockInfo, table: bytes, path: str) -> RunTable:
    """Raises CorruptionError when the rows contradict the header; the checksum was checked before."""
    if info.count == 0 or info.count * TABLE_ROW.size != len(table):
        raise CorruptionError(f"{path}: the run at byte {info.offset} has a table of {len(table)} bytes for {info.count} entries")
    numbers = struct.unpack(f">{2 * info.count}q", table)
    ids, offsets = numbers[0::2], numbers[1::2]
    if ids[0] != info.first or ids[-1] != info.last or offsets[0] != 0 or offsets[-1] + SIZE.size > info.body_bytes:
        raise CorruptionError(f"{path}: the table of the run at byte {info.offset} contradicts its header")
    return RunTable(ids, offsets, info.body_bytes)


def split_entry(data: bytes, size: int, path: str, offset: int) -> bytes:
    """The entry in ``u32 size, entry``, as read from a run's body. Raises CorruptionError: the size differs from the table's."""
    if len(data) != SIZE.size + size or SIZE.unpack_from(data)[0] != size:
        raise CorruptionError(f"{path}: the entry at byte {offset} does not have the {size} bytes of the run's table")
    return data[SIZE.size :]


def consecutive(entry_ids: Iterable[int]) -> list[range]:
    """Ascending ids as maximal runs."""
    found: list[range] = []
    start = stop = -1
    for entry_id in entry_ids:
        if entry_id != stop:
            if stop > start:
                found.append(range(start, stop))
            start = entry_id
        stop = entry_id + 1
    if stop > start:
        found.append(range(start, stop))
    return found
