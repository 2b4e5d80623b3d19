"""The text that PostgreSQL's ``pg_dump`` writes: how it differs from its other forms, and where its statements end. Pure.

Source: PostgreSQL 18, ``pg_backup_archiver.c`` (the first and the last comment), ``psqlscan.l`` (the end of a statement).
"""

from __future__ import annotations

import re
from typing import NamedTuple

MARKED_BYTES = 4096
"""Of the begin of a file, as the functions below take them."""
_TITLE, _COMPLETE = "-- PostgreSQL database dump", "-- PostgreSQL database dump complete"
_SPACE_AND_COMMENTS = rb"(?:\xef\xbb\xbf)?(?:\s+|--(?! PostgreSQL database )[^\n]*\n)*+"
_DUMP = re.compile(_SPACE_AND_COMMENTS + rb"-- PostgreSQL database dump\r?\n")
_DUMP_OF_ALL = re.compile(_SPACE_AND_COMMENTS + rb"-- PostgreSQL database cluster dump\r?\n")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_AS_TEXT = "write it as text with `pg_dump --format=plain`, or turn it into text with `pg_restore -f dump.sql`"
TABLE_OF_CONTENTS = "toc.dat"
"""The file that a dump in a folder, and the first member that a dump in a tar archive, has."""

_MARK = re.compile(
    r"""(?<![\w$])[eE]'|'|"|(?<![\w$])\$(?:[A-Za-z_\u0080-\U0010ffff][\w\u0080-\U0010ffff]*)?\$|--[^\n]*|/\*|;|\bBEGIN\s+ATOMIC\b""",
    re.IGNORECASE,
)
_ESCAPED = re.compile(r"(?:[^'\\]++|\\.|'')*+('?)", re.DOTALL)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_NOTHING = re.compile(r"\s*(?:--[^\n]*\n?)?")
_BODY_END = re.compile(r"(?:\A|\n)END\s*\Z", re.IGNORECASE)


def begins_pg_dump(begin: bytes) -> bool:
    """Whether a text begins as every plain dump of ``pg_dump`` and ``pg_restore -f`` does."""
    return _DUMP.match(begin) is not None


def unreadable_form(begin: bytes) -> str:
    """The form of a file that `pg_dump` wrote, or somebody packed, and cannot be read here, and the remedy; empty for all other files."""
    if begin.startswith(b"PGDMP"):
        return f"is a dump in pg_dump's custom format: {_AS_TEXT}"
    if begin.startswith(TABLE_OF_CONTENTS.encode() + b"\0"):
        return f"is a dump in pg_dump's tar format: {_AS_TEXT}"
    if _DUMP_OF_ALL.match(begin):
        return "is a dump of all databases by pg_dumpall: dump one with `pg_dump --format=plain`"
    for magic, name in _PACKED.items():
        if begin.startswith(magic):
            return f"is packed by {name}: unpack it first"
    if begin.startswith(_UTF_16):
        return "is a text in UTF-16, as some shells write it: write it in UTF-8, with `pg_dump --file`"
    return ""


def unreadable_folder(has_contents: bool) -> str:
    """As `unreadable_form`, for a folder.

    Args:
        has_contents: whether it has a file `TABLE_OF_CONTENTS`.
    """
    return f"is a dump in pg_dump's directory format: {_AS_TEXT}" if has_contents else "is a folder, a file belongs there"


class DumpStatement(NamedTuple):
    """A statement without its semicolon, or a command of psql's with its backslash.

    Args:
        line: its first one, from 1.
    """

    line: int
    text: str


class StatementSplitter:
    """Cuts lines into statements: the ends are those that psql finds."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._first = 0
        self._open = ""
        """The construct that goes on in the next line: a quote, E for a text with escapes, ``/*``, or the tag of a text between dollars."""
        self._depth = 0
        """Of comments within comments."""
        self._is_body = False
        """Whether a function's body is open, whose statements end with semicolons of their own."""
        self.held_characters = 0
        """Of the statement that is not complete."""
        self.is_complete = False
        """Whether the last comment of a dump has come, and none that begins another one."""

    @property
    def first_line(self) -> int:
        """Of the statement that is not complete; 0 for none."""
        return self._first if self._held else 0

    def feed(self, line: str, number: int) -> list[DumpStatement]:
        """The statements that end in the next line.

        Args:
            line: with its line end. number: from 1.
        """
        if not self._held:
            if line.startswith("\\"):
                return [DumpStatement(number, line.rstrip())]
            if line.startswith("--") or not line.strip():
                self._note(line.rstrip())
                return []
        found: list[DumpStatement] = []
        begin = at = 0
        while at < len(line):
            if self._open:
                at = self._past_open(line, at)
                continue
            match = _MARK.search(line, at)
            if match is None:
                break
            mark, at = match.group(), match.end()
            if mark == ";":
                self._hold(line[begin : match.start()], number)
                begin = self._end(found, at, begin=match.start())
            elif mark[0] in "bB":
                self._is_body = True
            elif not mark.startswith("--"):
                self._open = "E" if mark[0] in "eE" else mark
                self._depth = 1
        self._hold(line[begin:], number)
        return found

    def _note(self, comment: str) -> None:
        if comment in (_TITLE, _COMPLETE):
            self.is_complete = comment == _COMPLETE

    def _hold(self, text: str, number: int) -> None:
        if not self._held:
            if _NOTHING.fullmatch(text):
                return
            self._first = number
        self._held.append(text)
        self.held_characters += len(text)

    def _end(self, found: list[DumpStatement], after: int, *, begin: int) -> int:
        """A semicolon has come: where the next statement begins, or the semicolon itself if it belongs to the present one."""
        text = "".join(self._held).strip()
        if self._is_body and not _BODY_END.search(text):
            return begin
        if text:
            found.append(DumpStatement(self._first, text))
        self._held, self.held_characters, self._is_body = [], 0, False
        return after

    def _past_open(self, line: str, at: int) -> int:
        """The position behind what is open, or the end of the line if it goes on."""
        if self._open == "/*":
            for edge in _COMMENT_EDGE.finditer(line, at):
                self._depth += 1 if edge.group() == "/*" else -1
                if self._depth == 0:
                    self._open = ""
                    return edge.end()
            return len(line)
        if self._open == "E":
            match = _ESCAPED.match(line, at)
            assert match is not None, "the pattern matches an empty text"
            if not match[1]:
                return len(line)
            end = match.end()
        else:
            found = line.find(self._open, at)
            if found < 0:
                return len(line)
            end = found + len(self._open)
        self._open = ""
        return end
