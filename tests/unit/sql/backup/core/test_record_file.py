"""The file of a backup that holds batches of a log."""

from __future__ import annotations

import pytest

from triplicate.errors import BackupDamaged, FormatError
from triplicate.sql.backup.core.record_file import START, BatchFrame, RecordFileReader, encode_frame

FRAMES = [BatchFrame(4, 1, b"header", [b"a", b"bc"]), BatchFrame(6, 1, b"", [b""]), BatchFrame(7, 2, b"h", [b"x" * 100])]
DATA = START + b"".join(map(encode_frame, FRAMES))


def read(data: bytes, position: int = 4, end: int = 8) -> list[BatchFrame]:
    reader = RecordFileReader("it", position)
    frames = reader.feed(data)
    reader.finish(end)
    return frames


def test_batches_are_read_as_they_were_written() -> None:
    assert read(DATA) == FRAMES
    assert [frame.end for frame in FRAMES] == [6, 7, 8]


@pytest.mark.parametrize(
    "data",
    [
        DATA[:-1],
        DATA + b"\0",
        START + encode_frame(FRAMES[0]) + encode_frame(FRAMES[2]),
        START + encode_frame(FRAMES[1]),
        START + encode_frame(BatchFrame(4, 1, b"", [])),
        START + b"\xff\xff\xff\xff",
        START + b"\x02\0\0\0ab",
        b"",
        b"SQLite format 3\0",
    ],
)
def test_a_file_with_a_gap_or_a_cut_is_refused(data: bytes) -> None:
    with pytest.raises(BackupDamaged):
        read(data)


def test_a_later_version_is_refused_by_its_number() -> None:
    with pytest.raises(FormatError, match="version 9"):
        read(b"TRBL\x09\0\0\0")
