"""A file that is imported: its form, and whether there is anything in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplicate.cli.data_commands.sql_text_import import SEARCHED_BYTES, is_sql_text
from triplicate.errors import ArgumentError

EXPORT = b"-- triplicate: database bare\n-- triplicate: end of database bare\n"


@pytest.mark.parametrize(
    ("content", "is_text"),
    [
        (b"create table t(a);", True),
        (b"-- a comment\n\\! ls", True),
        (b"/* a */ -- b\n; select 1", True),
        (EXPORT, True),
        (b" " * (SEARCHED_BYTES + 1), True),
        (b"SQLite format 3\0", False),
        (b"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCOMMIT;\n", False),
    ],
)
def test_a_file_with_a_statement_has_a_form(tmp_path: Path, content: bytes, is_text: bool) -> None:
    (tmp_path / "file").write_bytes(content)
    assert is_sql_text(str(tmp_path / "file")) is is_text


@pytest.mark.parametrize(
    "content", [b"", b" \n\t;\n;", b"\xef\xbb\xbf-- only a comment", b"/* a\n*/\n-- b\n/* open", EXPORT[:40], b"-" * SEARCHED_BYTES]
)
def test_a_file_without_a_statement_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ArgumentError, match=r"file has no (bytes|statement), so there is nothing to import"):
        is_sql_text(str(tmp_path / "file"))
