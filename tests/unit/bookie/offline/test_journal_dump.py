"""Any content of a journal file is printed, and damage does not hide what follows."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from tests.unit.bookie.offline.dump_rig import ReadingDisk, adds_group, fact, journal_of, kinds, states_group
from triplicate.bookie.core.file_header import HEADER_BYTES
from triplicate.bookie.core.journal_format import ALIGNMENT
from triplicate.bookie.core.journal_mark import JournalMark, encode_mark
from triplicate.bookie.core.ledger_data import LedgerData
from triplicate.bookie.offline.dump_lines import DumpChoice, DumpLine
from triplicate.bookie.offline.journal_dump import dump_journal, dump_mark
from triplicate.errors import CorruptionError, FormatError

ENTRIES = DumpChoice(entries=True)
FENCED = LedgerData(5, b"secret-secret-secret", True)


def dumped(folder: Path, data: bytes, choice: DumpChoice = ENTRIES) -> list[DumpLine]:
    path = folder / "7.journal"
    path.write_bytes(data)
    return list(dump_journal(ReadingDisk(), str(path), choice))


def test_groups_adds_and_states_are_printed_in_order(tmp_path: Path) -> None:
    lines = dumped(tmp_path, journal_of(adds_group(1, [(5, 0), (5, 1)]), states_group(2, [FENCED])))
    assert kinds(lines) == ["header", "group", "entry", "entry", "group", "state", "end"]
    assert fact(lines, "entry", "entry") == [0, 1]
    assert fact(lines, "entry", "last_add_confirmed") == [-1, 0]
    assert fact(lines, "state", "fenced") == [True]
    assert lines[0].facts["bookie_id"] == "bookie-1"


def test_an_entry_is_at_the_offset_that_its_line_names(tmp_path: Path) -> None:
    data = journal_of(adds_group(1, [(5, 0), (6, 3)]))
    line = dumped(tmp_path, data)[3]
    assert line.offset is not None
    assert data[line.offset : line.offset + 16] == (6).to_bytes(8, "big") + (3).to_bytes(8, "big")


def test_without_entries_only_groups_are_printed(tmp_path: Path) -> None:
    assert kinds(dumped(tmp_path, journal_of(adds_group(1, [(5, 0)])), DumpChoice())) == ["header", "group", "end"]


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        (DumpChoice(ledger_id=6), [(6, 0), (6, 1)]),
        (DumpChoice(ledger_id=5, first_entry=1, last_entry=1), [(5, 1)]),
        (DumpChoice(entries=True, first_entry=1), [(5, 1), (6, 1)]),
        (DumpChoice(entries=True, start=HEADER_BYTES + ALIGNMENT), [(6, 0), (6, 1)]),
        (DumpChoice(entries=True, end=HEADER_BYTES + ALIGNMENT), [(5, 0), (5, 1)]),
    ],
)
def test_choices_narrow_the_entries(tmp_path: Path, choice: DumpChoice, found: list[tuple[int, int]]) -> None:
    lines = dumped(tmp_path, journal_of(adds_group(1, [(5, 0), (5, 1)]), adds_group(2, [(6, 0), (6, 1)])), choice)
    assert list(zip(fact(lines, "entry", "ledger"), fact(lines, "entry", "entry"), strict=True)) == found


def test_a_damaged_group_is_reported_and_the_next_one_printed(tmp_path: Path) -> None:
    data = bytearray(journal_of(adds_group(1, [(5, 0)]), adds_group(2, [(5, 1)]), adds_group(3, [(5, 2)])))
    data[HEADER_BYTES + ALIGNMENT + 60] ^= 1
    lines = dumped(tmp_path, bytes(data))
    assert fact(lines, "entry", "entry") == [0, 2]
    damage = next(line for line in lines if line.kind.value == "damage")
    assert (damage.offset, damage.facts["end"]) == (HEADER_BYTES + ALIGNMENT, HEADER_BYTES + 2 * ALIGNMENT)
    assert "groups between them are missing" in str(fact(lines, "damage", "reason")[1])


def test_a_torn_last_group_is_reported_with_its_offset(tmp_path: Path) -> None:
    data = journal_of(adds_group(1, [(5, 0)]), adds_group(2, [(5, 1)])[:70])
    line = dumped(tmp_path, data)[-1]
    assert (line.kind.value, line.offset, line.facts["end"]) == ("damage", HEADER_BYTES + ALIGNMENT, None)


def test_a_damaged_header_does_not_hide_the_groups(tmp_path: Path) -> None:
    data = bytearray(journal_of(adds_group(1, [(5, 0)])))
    data[30] ^= 1
    lines = dumped(tmp_path, bytes(data))
    assert kinds(lines) == ["damage", "group", "entry", "end"]


def test_a_damaged_header_without_a_group_is_refused(tmp_path: Path) -> None:
    data = bytearray(journal_of())
    data[30] ^= 1
    with pytest.raises(CorruptionError, match="fails its checksum"):
        dumped(tmp_path, bytes(data))


def test_the_earlier_content_of_a_reused_file_does_not_count(tmp_path: Path) -> None:
    data = journal_of(adds_group(1, [(5, 0)]), bytes(ALIGNMENT), adds_group(9, [(4, 0)], number=3), reused=True)
    lines = dumped(tmp_path, data)
    assert (fact(lines, "entry", "ledger"), lines[-1].kind.value) == ([5], "end")


def test_an_apache_journal_is_refused_with_the_command_that_reads_it(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"a journal file of an Apache bookie.*bookkeeper shell readjournal"):
        dumped(tmp_path, b"BKLG\0\0\0\6" + bytes(8192))


def test_no_line_holds_a_master_key(tmp_path: Path) -> None:
    lines = dumped(tmp_path, journal_of(adds_group(1, [(5, 0)]), states_group(2, [FENCED])), DumpChoice(entries=True, content=True))
    assert "secret" not in str(lines)


def test_a_mark_is_printed_and_a_damaged_one_reported(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    path.write_bytes(encode_mark(JournalMark(7, 8192, 2, 3)))
    (line,) = dump_mark(ReadingDisk(), str(path))
    assert line.facts == {"file_number": 7, "position": 8192, "sequence": 2, "flush": 3}
    path.write_bytes(b"x" * 48)
    assert kinds(dump_mark(ReadingDisk(), str(path))) == ["damage"]


def test_a_large_damaged_file_needs_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "7.journal"
    gap = 256 * 1024 * 1024
    data = bytearray(journal_of(adds_group(1, [(5, 0)]), zeros=0))
    data[HEADER_BYTES + 60] ^= 1
    path.write_bytes(data)
    os.truncate(path, gap)
    with path.open("ab") as file:
        file.write(adds_group(2, [(5, 1)]))
    tracemalloc.start()
    try:
        lines = list(dump_journal(ReadingDisk(), str(path), ENTRIES))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert fact(lines, "damage", "end") == [gap]
    assert fact(lines, "entry", "entry") == [1]
    assert peak < 16 * 1024 * 1024
