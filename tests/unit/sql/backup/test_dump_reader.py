"""Reading a dump as a stream."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from triplicate.errors import ArgumentError
from triplicate.sql.backup.dump_reader import DumpReader

END = b"-- PostgreSQL database dump complete\n"


class TextFile:
    """A file that gives few bytes at once."""

    def __init__(self, data: bytes, most: int) -> None:
        self._data = data
        self._most = most
        self.largest = 0

    def pread(self, size: int, offset: int) -> bytes:
        return self._data[offset : offset + min(size, self._most)]

    def size(self) -> int:
        return len(self._data)

    def pwrite(self, parts: Sequence[bytes], offset: int) -> int:
        raise AssertionError("a dump is read only")

    def truncate(self, size: int) -> None:
        raise AssertionError("a dump is read only")

    def sync(self) -> None:
        raise AssertionError("a dump is read only")

    def close(self) -> None:
        pass


def read(data: bytes, most: int = 1 << 20) -> list[object]:
    reader = DumpReader(TextFile(data, most), "d.sql")  # type: ignore[arg-type]
    found: list[object] = []
    for statement in reader.statements():
        found.append((statement.line, statement.text))
        if statement.text.startswith("COPY"):
            first = reader.line
            found.append((first, b"".join(reader.data()), reader.line))
    return found


@pytest.mark.parametrize("most", [1, 2, 7, 1 << 20])
def test_data_are_told_from_statements_however_the_file_is_read(most: int) -> None:
    data = "\ufeffSELECT 1;\nCOPY t FROM stdin;\n1\t;\n\\\\.\n\\.x\n\\.\n\nCOPY u FROM stdin;\n\\.\nSELECT 'ü';\n".encode() + END
    assert read(data, most) == [
        (1, "SELECT 1"),
        (2, "COPY t FROM stdin"),
        (2, b"1\t;\n\\\\.\n\\.x\n", 6),
        (8, "COPY u FROM stdin"),
        (8, b"", 9),
        (10, "SELECT 'ü'"),
    ]


def test_line_ends_of_windows_are_read() -> None:
    data = b"SELECT 1;\r\nCOPY t FROM stdin;\r\n1\r\n\\.\r\nSELECT 2;\r\n" + END.replace(b"\n", b"\r\n")
    assert read(data) == [(1, "SELECT 1"), (2, "COPY t FROM stdin"), (2, b"1\r\n", 4), (5, "SELECT 2")]


def test_data_come_in_blocks_that_are_not_kept() -> None:
    row = b"x" * 99 + b"\n"
    reader = DumpReader(TextFile(b"COPY t FROM stdin;\n" + row * 100_000 + b"\\.\n" + END, 1 << 20), "d.sql")  # type: ignore[arg-type]
    sizes = []
    for _ in reader.statements():
        sizes = [len(block) for block in reader.data()]
    assert sum(sizes) == 10_000_000
    assert max(sizes) <= (1 << 20) + len(row)
    assert reader.line == 100_003


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"SELECT 1;\n", "d.sql is not complete: .* behind line 1"),
        (b"SELECT 1;\n\nSELECT '\n;\n", "d.sql, line 3: the text ends, at line 4, within this statement"),
        (b"COPY t FROM stdin;\n1\n", "d.sql, line 2: the text ends within the data of COPY of line 1"),
        (b"COPY t FROM stdin;\n\\.", "d.sql, line 1: the text ends within the data of COPY of line 1"),
        (b"SELECT 1;\nSELECT '\xff';\n", "d.sql, line 2: the text is no UTF-8"),
        (b"", "d.sql is not complete"),
    ],
)
def test_a_text_that_is_cut_off_or_no_utf_8_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        read(data)


def test_a_statement_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.sql.backup.dump_reader.STATEMENT_CHARACTERS_MAX", 1000)
    monkeypatch.setattr("triplicate.sql.backup.dump_reader.ROW_BYTES_MAX", 1000)
    with pytest.raises(ArgumentError, match="line 2: the statement has more than 1000 characters"):
        read(b"\nSELECT '\n" + b"x\n" * 1000)
    with pytest.raises(ArgumentError, match="line 2: the line is too long"):
        read(b"\nSELECT '" + b"x" * 5000, 100)
    with pytest.raises(ArgumentError, match="line 2: the line is too long"):
        read(b"COPY t FROM stdin;\n" + b"x" * 5000, 100)
