"""The entry logs of a bookie as found at start: listed, read, repaired and finished. Everything here blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from triplicate.bookie.core.entry_log_format import (
    SIZE,
    BlockInfo,
    BlockType,
    EntryLogScanner,
    decode_run_table,
    encode_footer,
)
from triplicate.bookie.core.file_header import HEADER_BYTES
from triplicate.bookie.core.ledger_data import LedgerData, decode_states
from triplicate.bookie.files import NO_SPACE, numbered_files
from triplicate.errors import CorruptionError
from triplicate.runtime import Disk, Trace

SUFFIX = ".entries"
COPY_BYTES = 1024 * 1024
"""Bytes of a log read or written again at a time."""


@dataclass(slots=True)
class LogContent:
    """The content of one entry log, as found at start."""

    number: int
    path: str
    size: int
    blocks: list[BlockInfo]
    states: list[tuple[int, LedgerData]]
    """(flush number, state); filled only on request."""
    finished: bool
    damaged_at: int | None = None
    """Offset of a damaged block with a good one behind it. Blocks from there on are missing here."""
    broken: BlockInfo | None = None
    """A broken block with nothing whole behind it, as its header describes it: a write cut short by a crash, or damage."""
    passed: list[BlockInfo] = field(default_factory=list)
    """Broken runs with whole blocks behind them, as their headers describe them; filled only on request. The caller judges whether they
    count."""


def existing_logs(disk: Disk, directories: Sequence[str]) -> dict[int, str]:
    """Paths of all entry logs by number, ascending. Raises CorruptionError: two directories have the same number."""
    found: dict[int, str] = {}
    for directory in directories:
        for number, path in numbered_files(disk, directory, SUFFIX).items():
            if number in found:
                raise CorruptionError(f"{path} and {found[number]} have the same number: one is a copy; move it away")
            found[number] = path
    return dict(sorted(found.items()))


def read_log(disk: Disk, number: int, path: str, *, with_states: bool, trace: Trace, pass_torn_runs: bool = False) -> LogContent:
    """Read a log's blocks from its footer, or scan the log if it was never finished or the footer is damaged.

    Args:
        pass_torn_runs: continue behind broken runs whose headers lead to a whole block.

    Raises:
        CorruptionError: neither the header nor a footer can be read. FormatError: from a newer release.
    """
    file = disk.open(path, readonly=True)
    try:
        size = file.size()
        reader = EntryLogScanner(file.pread, size, path)
        blocks, damaged = reader.listed(file.pread(HEADER_BYTES, 0))
        for what, error in damaged.items():
            trace(f"bookie.{what}_damaged", path=path, error=str(error))
        finished = blocks is not None
        states: list[tuple[int, LedgerData]] = []
        damaged_at = broken = None
        passed: list[BlockInfo] = []
        if blocks is None:
            blocks, offset = [], HEADER_BYTES
            while offset:
                try:
                    for info, table in reader.scan(offset):
                        if info.type is BlockType.FOOTER:
                            break
                        blocks.append(info)
                        if with_states and info.type is BlockType.STATES:
                            states += [(info.flush_number, state) for state in decode_states(table, info.count)]
                    offset = 0
                except CorruptionError as error:
                    end = max(offset, blocks[-1].end) if blocks else offset
                    behind = reader.good_block_behind(end)
                    torn = reader.torn_runs(end, behind.offset) if behind is not None and pass_torn_runs else []
                    offset = behind.offset if torn and behind is not None else 0
                    passed += torn
                    if behind is None:
                        broken = reader.broken_block(end)
                    elif not torn:
                        damaged_at = end
                    trace("bookie.entry_log_ends_early", path=path, error=str(error), damaged=damaged_at is not None, passed=len(torn))
        elif with_states:
            for info in blocks:
                if info.type is BlockType.STATES:
                    states += [(info.flush_number, state) for state in decode_states(reader.block(info.offset)[1], info.count)]
        return LogContent(number, path, size, blocks, states, finished, damaged_at, broken, passed)
    finally:
        file.close()


def finish_log(disk: Disk, content: LogContent, durable_bytes: int, trace: Trace) -> int | None:
    """Give a log that a crash left open its footer, after cutting it to the length that the index knows to be durable.

    Bytes behind that length may exist only in the operating system's memory, although they look whole, and a later sync would not save
    them. No row points there, and the journal has their entries. If the index knows more bytes than there are, the log is damaged: it stays
    unchanged, and only its good blocks are readable.

    Returns:
        the length of the finished log, None for a damaged one.
    """
    blocks = [block for block in content.blocks if block.end <= durable_bytes]
    end = blocks[-1].end if blocks else HEADER_BYTES
    if end != durable_bytes and _finished_size(blocks, end) != durable_bytes:
        trace("bookie.entry_log_damaged", path=content.path, good_bytes=end, durable_bytes=durable_bytes)
        return None
    return _write_footer(disk, content.path, blocks, end, content.size, max(end, durable_bytes))


def _finished_size(blocks: list[BlockInfo], end: int) -> int:
    return end + sum(map(len, encode_footer(0, blocks, end, b"")))


def _write_footer(disk: Disk, path: str, blocks: list[BlockInfo], end: int, size: int, kept_bytes: int) -> int:
    """Cut a log and end it with a footer. If there is no space for the footer, keep `kept_bytes` of the log and nothing behind them."""
    file = disk.open(path)
    try:
        header = file.pread(HEADER_BYTES, 0)
        if size > kept_bytes:
            file.truncate(kept_bytes)
        flush_number = max([block.flush_number for block in blocks], default=0)
        try:
            written = file.pwrite(encode_footer(flush_number, blocks, end, header), end)
            file.sync()
        except OSError as error:
            if error.errno in NO_SPACE:
                file.truncate(kept_bytes)
            raise
        return end + written
    finally:
        file.close()


def drop_copies(disk: Disk, contents: Sequence[LogContent], is_known: Callable[[BlockInfo], bool]) -> None:
    """Keep one copy of each run that stands in several logs, and remove the other copies from `contents`.

    A log without a footer may hold bytes that were never synced, and a loss of power may have taken only the body of a run, which has no
    checksum. A finished log is therefore preferred, then a log in which the sizes before the entries match the table, then the older log,
    since compaction copies from it.

    Args:
        contents: of unfinished logs, by number.
        is_known: whether a finished log holds the same run.
    """
    kept: dict[tuple[int, ...], tuple[LogContent, BlockInfo]] = {}
    for content in contents:
        for block in content.blocks:
            if block.type is BlockType.RUN and not is_known(block):
                other = kept.setdefault(_identity(block), (content, block))
                if other[0] is not content and _is_torn(disk, *other) and not _is_torn(disk, content, block):
                    kept[_identity(block)] = content, block
    chosen = {(content.number, block.offset) for content, block in kept.values()}
    for content in contents:
        content.blocks = [block for block in content.blocks if block.type is not BlockType.RUN or (content.number, block.offset) in chosen]


def _identity(run: BlockInfo) -> tuple[int, ...]:
    return run.ledger_id, run.flush_number, run.first, run.last, run.count, run.body_bytes


def same_run(one: BlockInfo, other: BlockInfo) -> bool:
    """Whether two runs are copies of each other."""
    return _identity(one) == _identity(other)


def _is_torn(disk: Disk, content: LogContent, run: BlockInfo) -> bool:
    """Whether a size field before an entry of the run differs from the table."""
    file = disk.open(content.path, readonly=True)
    try:
        _, data = EntryLogScanner(file.pread, content.size, content.path).block(run.offset, run)
        table = decode_run_table(run, data, content.path)
        part, part_start = b"", 0
        for start, end in pairwise([*table.offsets, run.body_bytes]):
            if start + SIZE.size > part_start + len(part):
                part, part_start = file.pread(min(COPY_BYTES, run.body_bytes - start), run.body_offset + start), start
            if part[start - part_start : start - part_start + SIZE.size] != SIZE.pack(end - start - SIZE.size):
                return True
        return False
    finally:
        file.close()


def secure_log(disk: Disk, content: LogContent) -> int:
    """Write an unfinished log again and finish it as it was found, when no index has its durable length. Returns its length.

    Everything is written again: a sync alone would not save pages that a failed sync of the process before has left in memory.
    """
    end = content.blocks[-1].end if content.blocks else HEADER_BYTES
    file = disk.open(content.path)
    try:
        for offset in range(0, end, COPY_BYTES):
            file.pwrite([file.pread(min(COPY_BYTES, end - offset), offset)], offset)
        file.sync()
    finally:
        file.close()
    return _write_footer(disk, content.path, content.blocks, end, content.size, end)
