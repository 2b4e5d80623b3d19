"""A reused journal file of the first release that reuses them: every later release reads it."""

from __future__ import annotations

from pathlib import Path

from tests.golden.disk.make_reused import FIRST_SEQUENCE, NUMBER, STATES, sample
from triplicate.bookie.core.file_header import HEADER_BYTES, JOURNAL_MAGIC, decode_file_header
from triplicate.bookie.core.journal_format import GroupScanner
from triplicate.bookie.core.ledger_data import decode_states

REUSED = Path(__file__).parent / "disk" / "reused.journal"


def test_groups_and_end_of_a_reused_file_are_found() -> None:
    data = REUSED.read_bytes()
    identity = decode_file_header(data[:HEADER_BYTES], JOURNAL_MAGIC, REUSED.name)
    assert (identity.number, identity.extra) == (NUMBER, {"reused": True})
    scanner = GroupScanner(lambda size, offset: data[offset : offset + size], len(data), REUSED.name, NUMBER, reused=True)
    found = [(group.sequence, list(decode_states(group.body, group.count))) for group in scanner.groups(FIRST_SEQUENCE - 1)]
    assert found == [(sequence, STATES[: sequence % 3]) for sequence in range(FIRST_SEQUENCE, FIRST_SEQUENCE + 3)]
    assert scanner.torn is None


def test_a_release_without_reused_files_finds_the_same_groups_and_a_torn_tail() -> None:
    data = REUSED.read_bytes()
    scanner = GroupScanner(lambda size, offset: data[offset : offset + size], len(data), REUSED.name, NUMBER)
    assert len(list(scanner.groups(FIRST_SEQUENCE - 1))) == 3
    assert scanner.torn is not None


def test_this_release_writes_the_same_bytes() -> None:
    assert sample() == REUSED.read_bytes()
