"""Entry logs: runs, state records and footers as bytes."""

from __future__ import annotations

import pytest

from triplicate.bookie.core.entry_log_format import (
    BLOCK_HEADER_BYTES,
    BlockInfo,
    BlockType,
    EntryLogScanner,
    decode_run_table,
    encode_footer,
    encode_run,
    encode_states_block,
    split_entry,
)
from triplicate.bookie.core.file_header import ENTRY_LOG_MAGIC, FileIdentity, encode_file_header
from triplicate.bookie.core.ledger_data import LedgerData, decode_states
from triplicate.errors import CorruptionError, FormatError
from triplicate.wire import v2

HEADER = encode_file_header(ENTRY_LOG_MAGIC, FileIdentity("bookie-1", "a-cluster", 1))
ENTRIES: list[tuple[int, bytes]] = [(5, b"five"), (6, b""), (9, b"nine" * 10)]
STATE = LedgerData(42, b"k" * 20, True)


def join(buffers: list[bytes | bytearray | memoryview]) -> bytes:
    return b"".join(bytes(buffer) for buffer in buffers)


def log_of(*, footer: bool) -> tuple[bytes, list[BlockInfo]]:
    data = HEADER
    head, body, run = encode_run(3, 42, [entry_id for entry_id, _ in ENTRIES], [entry for _, entry in ENTRIES], len(data))
    data += join([head, *body])
    state_buffers, states = encode_states_block(3, [STATE], len(data))
    data += join(state_buffers)
    if footer:
        data += join(encode_footer(3, [run, states], len(data), HEADER))
    return data, [run, states]


def reader_of(data: bytes) -> EntryLogScanner:
    return EntryLogScanner(lambda size, offset: data[offset : offset + size], len(data), "1.entries")


def test_a_run_holds_its_entries_in_order_as_a_batch_read_answers_them() -> None:
    data, (run, _) = log_of(footer=False)
    table = reader_of(data).run_table(run)
    for entry_id, entry in ENTRIES:
        place = table.find(entry_id)
        assert place is not None
        start, size = place
        stored = data[run.body_offset + start : run.body_offset + start + 4 + size]
        assert split_entry(stored, size, "x", 0) == entry
    assert table.find(7) is None
    assert table.find(10) is None
    assert v2.split_sized(data[run.body_offset : run.end]) == tuple(entry for _, entry in ENTRIES)


def test_scan_and_footer_agree() -> None:
    data, blocks = log_of(footer=True)
    reader = reader_of(data)
    assert reader.footer(HEADER) == blocks
    scanned = list(reader.scan())
    assert [info for info, _ in scanned][:2] == blocks
    assert scanned[2][0].type is BlockType.FOOTER
    assert list(decode_states(scanned[1][1], 1)) == [STATE]


def test_a_log_without_trailer_has_no_footer() -> None:
    data, _ = log_of(footer=False)
    assert reader_of(data).footer(HEADER) is None


def test_every_flipped_byte_outside_of_entries_is_detected() -> None:
    data, blocks = log_of(footer=True)
    body = range(blocks[0].body_offset, blocks[0].end)
    for position in range(len(HEADER), len(data)):
        if position in body:
            continue
        damaged = bytearray(data)
        damaged[position] ^= 0x20
        reader = reader_of(bytes(damaged))
        in_trailer = position >= len(data) - 20
        found = False
        try:
            found = reader.footer(HEADER) is None
            for block in blocks:
                reader.block(block.offset, block)
        except CorruptionError:
            found = True
        assert found, f"byte {position}{' of the trailer' if in_trailer else ''}"


def test_a_flipped_size_of_an_entry_is_detected() -> None:
    data, (run, _) = log_of(footer=False)
    damaged = bytearray(data)
    damaged[run.body_offset + 3] ^= 1
    table = reader_of(bytes(damaged)).run_table(run)
    start, size = table.extent(0)
    with pytest.raises(CorruptionError):
        split_entry(bytes(damaged[run.body_offset + start : run.body_offset + start + 4 + size]), size, "x", 0)


def test_a_block_that_is_not_the_one_the_index_names_is_refused() -> None:
    data, (run, _) = log_of(footer=False)
    other = BlockInfo(run.type, run.offset, run.flush_number, 43, run.first, run.last, run.count, run.table_bytes, run.body_bytes)
    with pytest.raises(CorruptionError, match="not the one"):
        reader_of(data).block(run.offset, other)


def test_a_footer_of_another_log_is_refused() -> None:
    data, _ = log_of(footer=True)
    other = encode_file_header(ENTRY_LOG_MAGIC, FileIdentity("bookie-1", "a-cluster", 2))
    with pytest.raises(CorruptionError, match="belong together"):
        reader_of(data).footer(other)


def test_a_good_block_behind_a_damaged_one_is_found() -> None:
    data, (run, states) = log_of(footer=False)
    damaged = bytearray(data)
    damaged[run.offset + 20] ^= 1
    assert reader_of(bytes(damaged)).good_block_behind(run.offset) == states
    assert reader_of(bytes(damaged[: states.offset])).good_block_behind(run.offset) is None


def test_unknown_flags_are_named() -> None:
    from triplicate.bookie.core.checksum import crc32c

    data, (run, _) = log_of(footer=False)
    changed = bytearray(data)
    changed[run.offset + 7] = 1
    head = bytes(changed[run.offset : run.offset + BLOCK_HEADER_BYTES - 4])
    table = bytes(changed[run.table_offset : run.body_offset])
    changed[run.offset + BLOCK_HEADER_BYTES - 4 : run.table_offset] = crc32c(head, table).to_bytes(4, "big")
    with pytest.raises(FormatError, match="flags 0x1"):
        reader_of(bytes(changed)).block(run.offset)


def test_a_table_that_contradicts_its_header_is_refused() -> None:
    _, (run, _) = log_of(footer=False)
    with pytest.raises(CorruptionError):
        decode_run_table(run, b"", "x")
    with pytest.raises(CorruptionError):
        decode_run_table(run, bytes(run.table_bytes), "x")
