"""Where the statements of a dump end."""

from __future__ import annotations

import pytest

from triplicate.sql.backup.core.dump_text import StatementSplitter, begins_pg_dump, unreadable_folder, unreadable_form


def split(text: str) -> list[tuple[int, str]]:
    splitter = StatementSplitter()
    lines = enumerate(text.splitlines(keepends=True), start=1)
    return [(one.line, one.text) for number, line in lines for one in splitter.feed(line, number)]


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("-- a;\n\nSELECT 1;\nSELECT\n 2;\n", [(3, "SELECT 1"), (4, "SELECT\n 2")]),
        ("SELECT 1; SELECT 2; -- three;\nSELECT 4;\n", [(1, "SELECT 1"), (1, "SELECT 2"), (2, "SELECT 4")]),
        ("SELECT 'a;\n''b'';\n-- c';\n", [(1, "SELECT 'a;\n''b'';\n-- c'")]),
        ("SELECT E'a\\';''\\\\';\nSELECT 2;\n", [(1, "SELECT E'a\\';''\\\\'"), (2, "SELECT 2")]),
        ("SELECT E'a\\\n;';\nSELECT 2;\n", [(1, "SELECT E'a\\\n;'"), (3, "SELECT 2")]),
        ('SELECT "a;"";\n";\n', [(1, 'SELECT "a;"";\n"')]),
        ("CREATE f AS $$a; 'b\n$x$ $$;\nSELECT 2;\n", [(1, "CREATE f AS $$a; 'b\n$x$ $$"), (3, "SELECT 2")]),
        ("CREATE f AS $_x$a; $$ b\n$_x$;\nSELECT a$b$c;\n", [(1, "CREATE f AS $_x$a; $$ b\n$_x$"), (3, "SELECT a$b$c")]),
        ("SELECT /* ; /* ' */\n; */ 1;\nSELECT 2;\n", [(1, "SELECT /* ; /* ' */\n; */ 1"), (3, "SELECT 2")]),
        ("CREATE f BEGIN ATOMIC\n SELECT 1;\n SELECT CASE 1\n END;\nEND;\nSELECT 2;\n",
         [(1, "CREATE f BEGIN ATOMIC\n SELECT 1;\n SELECT CASE 1\n END;\nEND"), (6, "SELECT 2")]),
        ("\\restrict x;\nSELECT 1\n\\no;\n", [(1, "\\restrict x;"), (2, "SELECT 1\n\\no")]),
        (";;\nSELECT 1;;\n", [(2, "SELECT 1")]),
        ("SELECT 1", []),
    ],
)  # fmt: skip
def test_a_statement_ends_where_psql_ends_it(text: str, statements: list[tuple[int, str]]) -> None:
    assert split(text) == statements


def test_a_statement_that_is_not_complete_is_known_by_its_first_line() -> None:
    splitter = StatementSplitter()
    assert splitter.first_line == 0
    for number, line in enumerate(["SELECT 1;\n", "\n", "SELECT '\n", ";\n"], start=1):
        splitter.feed(line, number)
    assert (splitter.first_line, splitter.held_characters) == (3, 11)


def test_a_dump_is_complete_behind_its_last_comment_until_another_one_begins() -> None:
    splitter = StatementSplitter()
    seen = []
    lines = ["-- PostgreSQL database dump", "SELECT '\n-- PostgreSQL database dump complete\n';", "-- PostgreSQL database dump complete"]
    for line in [*lines, "\\unrestrict x", lines[0]]:
        for part in line.splitlines():
            splitter.feed(part + "\n", 1)
        seen.append(splitter.is_complete)
    assert seen == [False, False, True, True, False]


@pytest.mark.parametrize(
    ("begin", "is_dump"),
    [
        (b"--\n-- PostgreSQL database dump\n--\n\n\\restrict x\n", True),
        (b"\xef\xbb\xbf--\r\n-- PostgreSQL database dump\r\n--\r\n", True),
        (b"-- kept since 2019\n\n-- PostgreSQL database dump\n", True),
        (b"--\n-- PostgreSQL database cluster dump\n--\n", False),
        (b"SELECT 1;\n-- PostgreSQL database dump\n", False),
        (b"-- PostgreSQL database dump", False),
        (b"--\n" * 1365, False),
        (b"", False),
    ],
)
def test_a_dump_is_known_by_its_first_comment(begin: bytes, is_dump: bool) -> None:
    assert begins_pg_dump(begin) is is_dump


def test_the_forms_of_dumps_that_are_no_text_are_named_with_what_helps() -> None:
    assert "pg_restore -f" in unreadable_form(b"PGDMP\x01")
    assert "pg_restore -f" in unreadable_folder(True)
    assert unreadable_folder(False) == "is a folder, a file belongs there"
    assert unreadable_form(b"SQLite format 3\0") == unreadable_form(b"--\n-- PostgreSQL database dump\n") == ""
