"""Any content of an entry log is printed, and damage does not hide what follows."""

from __future__ import annotations

import base64
import os
import tracemalloc
from pathlib import Path

import pytest

from tests.unit.bookie.offline.dump_rig import LOG_HEADER, ReadingDisk, entry_of, fact, kinds, log_of
from triplicate.bookie.core.entry_log_format import SIZE
from triplicate.bookie.core.file_header import HEADER_BYTES
from triplicate.bookie.offline.dump_lines import DumpChoice, DumpLine
from triplicate.bookie.offline.entry_log_dump import dump_entry_log
from triplicate.errors import CorruptionError, FormatError

ENTRIES = DumpChoice(entries=True)
RUNS = [(5, [0, 1, 4]), (6, [0]), (7, [2, 3])]


def dumped(folder: Path, data: bytes, choice: DumpChoice = ENTRIES) -> list[DumpLine]:
    path = folder / "7.entries"
    path.write_bytes(data)
    return list(dump_entry_log(ReadingDisk(), str(path), choice))


def test_runs_entries_and_states_are_printed_in_order(tmp_path: Path) -> None:
    data, _ = log_of(RUNS)
    lines = dumped(tmp_path, data)
    entries = ["block", *["entry"] * 3, "block", "entry", "block", *["entry"] * 2]
    assert kinds(lines) == ["header", *entries, "block", *["state"] * 3, "block", "end"]
    assert fact(lines, "entry", "entry") == [0, 1, 4, 0, 2, 3]
    assert kinds(dumped(tmp_path, data, DumpChoice())) == ["header", *["block"] * 5, "end"]


def test_an_entry_is_at_the_offset_that_its_line_names(tmp_path: Path) -> None:
    data, _ = log_of(RUNS)
    lines = dumped(tmp_path, data, DumpChoice(content=True, entries=True, ledger_id=5, first_entry=4, last_entry=4))
    assert kinds(lines) == ["header", "block", "entry", "end"]
    offset, entry = lines[2].offset, entry_of(5, 4)
    assert offset is not None
    assert data[offset : offset + len(entry)] == entry
    assert base64.b64decode(str(lines[2].facts["content_base64"])) == entry[32:]


def test_a_ledger_or_a_position_narrows_the_blocks(tmp_path: Path) -> None:
    data, blocks = log_of(RUNS)
    assert fact(dumped(tmp_path, data, DumpChoice(ledger_id=6)), "state", "ledger") == [6]
    placed = dumped(tmp_path, data, DumpChoice(entries=True, start=blocks[1].offset, end=blocks[2].offset))
    assert fact(placed, "entry", "ledger") == [6]


def test_a_damaged_run_is_reported_and_the_next_one_printed(tmp_path: Path) -> None:
    data, blocks = log_of(RUNS)
    damaged = bytearray(data)
    damaged[blocks[1].offset + 20] ^= 1
    lines = dumped(tmp_path, bytes(damaged))
    assert fact(lines, "entry", "ledger") == [5, 5, 5, 7, 7]
    damage = next(line for line in lines if line.kind.value == "damage")
    assert (damage.offset, damage.facts["end"]) == (blocks[1].offset, blocks[2].offset)


def test_an_entry_with_a_wrong_size_is_reported_and_the_next_one_printed(tmp_path: Path) -> None:
    data, blocks = log_of(RUNS)
    damaged = bytearray(data)
    damaged[blocks[0].body_offset + SIZE.size - 1] ^= 1
    lines = dumped(tmp_path, bytes(damaged), DumpChoice(ledger_id=5))
    assert fact(lines, "entry", "entry") == [1, 4]
    assert [line.offset for line in lines if line.kind.value == "damage"] == [blocks[0].body_offset]


def test_an_entry_with_a_foreign_header_is_named(tmp_path: Path) -> None:
    data, blocks = log_of([(6, [0])])
    damaged = bytearray(data)
    damaged[blocks[0].body_offset + SIZE.size + 7] ^= 1
    assert fact(dumped(tmp_path, bytes(damaged)), "entry", "problem") == ["its header names entry 0 of ledger 7"]


def test_an_unfinished_log_ends_where_its_bytes_end(tmp_path: Path) -> None:
    data, blocks = log_of(RUNS, footer=False)
    assert dumped(tmp_path, data)[-1].facts == {"reason": "end of the file, without a footer"}
    torn = dumped(tmp_path, data[: blocks[-1].offset + 30])[-1]
    assert (torn.kind.value, torn.offset, torn.facts["end"]) == ("damage", blocks[-1].offset, None)


def test_a_damaged_trailer_and_a_damaged_header_are_reported(tmp_path: Path) -> None:
    data, _ = log_of(RUNS)
    damaged = bytearray(data)
    damaged[-1] ^= 1
    assert kinds(dumped(tmp_path, bytes(damaged)))[-1] == "damage"
    damaged = bytearray(data)
    damaged[30] ^= 1
    lines = dumped(tmp_path, bytes(damaged), DumpChoice())
    assert kinds(lines) == ["damage", *["block"] * 5, "damage"]


@pytest.mark.parametrize("data", [b"", b"x" * 9000, LOG_HEADER.replace(b"TPENTR", b"TPJRNL")])
def test_a_file_that_is_no_entry_log_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(CorruptionError, match="no header of the kind TPENTR"):
        dumped(tmp_path, data)


def test_an_apache_log_is_refused_with_the_command_that_reads_it(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"an entry log of an Apache bookie.*bookkeeper shell readlog"):
        dumped(tmp_path, b"BKLO\0\0\0\1" + bytes(8192))


def test_a_large_damaged_file_needs_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "7.entries"
    gap = 256 * 1024 * 1024
    data, blocks = log_of([(5, [0])])
    damaged = bytearray(data[: blocks[0].end])
    # A table length that reaches over the gap: it must not be read at once.
    damaged[HEADER_BYTES + 44 : HEADER_BYTES + 48] = (gap // 2).to_bytes(4, "big")
    path.write_bytes(damaged)
    os.truncate(path, gap)
    with path.open("ab") as file:
        file.write(data[blocks[0].offset : blocks[0].end])
    tracemalloc.start()
    try:
        lines = list(dump_entry_log(ReadingDisk(), str(path), ENTRIES))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert fact(lines, "damage", "end") == [gap]
    assert fact(lines, "entry", "entry") == [0]
    assert peak < 16 * 1024 * 1024
