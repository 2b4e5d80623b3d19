"""Writes the sample of a reused journal file that `tests/golden/test_reused_journal.py` reads. Run it only for a new format.

Usage: make_reused.py FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

from triplicate.bookie.core.file_header import JOURNAL_MAGIC, FileIdentity, encode_file_header
from triplicate.bookie.core.journal_format import ALIGNMENT, END_BLOCK, REUSED_KEY, GroupType, encode_group
from triplicate.bookie.core.ledger_data import LedgerData, encode_states

NUMBER, FORMER = 7, 5
FIRST_SEQUENCE = 41
STATES = [LedgerData(1, b"k" * 20, True), LedgerData(2, b"l" * 20, False, b"an explicit record")]
FILE_BYTES = 8 * ALIGNMENT


def lay(data: bytearray, number: int, sequences: range) -> int:
    """Write groups one after another over a file; return the end of the last one."""
    offset = ALIGNMENT
    for sequence in sequences:
        body, count = encode_states(STATES[: sequence % 3])
        group = b"".join(bytes(part) for part in encode_group(GroupType.STATES, number, sequence, count, [body]))
        data[offset : offset + len(group)] = group
        offset += len(group)
    return offset


def sample() -> bytes:
    data = bytearray(FILE_BYTES)
    lay(data, FORMER, range(20, 27))
    identity = FileIdentity("bookie-1", "3f2c6f0e-7d5b-4d0a-9a41-6a1a0f3f9e55", NUMBER, 1, {REUSED_KEY: True})
    data[:ALIGNMENT] = encode_file_header(JOURNAL_MAGIC, identity)
    end = lay(data, NUMBER, range(FIRST_SEQUENCE, FIRST_SEQUENCE + 3))
    data[end : end + ALIGNMENT] = END_BLOCK
    return bytes(data)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(sample())
