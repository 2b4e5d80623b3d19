"""COPY's text format: fields between delimiters, with backslash escapes. Pure.

Source: PostgreSQL 15 documentation, "COPY", section "Text Format"; ``CopyReadAttributesText`` and ``CopyAttributeOutText``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from triplicate.errors import SqlError
from triplicate.sql.pg.syntax.copy_statement import CopyOptions
from triplicate.sql.pg.values.copy_lines import CopyPlace, LineReader, Scanned

_LINE = re.compile(r"(?:[^\\\r\n]++|\\[^.])*+", re.DOTALL)
_FIRST_LINE = re.compile(rb"(?:[^\\\r\n]++|\\.)*+(\r\n?|\n)", re.DOTALL)
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.)|\Z)", re.DOTALL)
_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_ESCAPED = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\"}


class TextReader(LineReader):
    """Reads rows of the text format."""

    def __init__(self, options: CopyOptions, place: CopyPlace, columns: Sequence[str]) -> None:
        super().__init__(options, place, columns)
        self._escaped_delimiter = "\\" + options.delimiter

    def _find_newline(self, data: bytes) -> str:
        first = _FIRST_LINE.match(data)
        if first is None or (first[1] == b"\r" and first.end() == len(data)):
            return ""
        return first[1].decode()

    def _split(self, text: str) -> list[list[str | None]] | None:
        delimiter, null, fields = self._options.delimiter, self._options.null, self._fields
        has_escapes = "\\" in text
        if has_escapes and ("\\\n" in text or self._escaped_delimiter in text):
            return None
        lines = text.split("\n")
        lines.pop()
        if "\\" not in null:
            return [fields(line.split(delimiter)) for line in lines]
        if has_escapes:
            return [fields(line.split(delimiter)) if "\\" in line else line.split(delimiter) for line in lines]  # type: ignore[misc]
        return [line.split(delimiter) for line in lines]  # type: ignore[misc]

    def _fields(self, raw: list[str]) -> list[str | None]:
        null = self._options.null
        return [None if field == null else _unescaped(field) if "\\" in field else field for field in raw]

    def _scan(self, text: str, line: int, *, is_last: bool) -> Scanned:
        newline, at, size = self._newline, 0, len(text)
        rows: list[list[str | None]] = []
        lines: list[int] = []
        while at < size:
            found = _LINE.match(text, at)
            assert found is not None, "the pattern matches an empty text"
            end = found.end()
            if end < size - 1 and text[end] == "\\":
                if end == at and text.startswith(newline, end + 2):
                    return Scanned(rows, lines, size, True)
                return Scanned(rows, lines, size, True, self._place.error("22P04", "end-of-copy marker corrupt", line + 1))
            # A line end after a backslash is a part of the row, and so is a backslash at the end of all data, which PostgreSQL drops.
            if (end == size or text[end] == "\\") and not is_last:
                break
            if end < size and text[end] != "\\" and not text.startswith(newline, end):
                error = self._wrong_line_end(text, end, line + 1, "literal", 'Use "{shown}" to represent {what}.')
                return Scanned(rows, lines, size, True, error)
            line += 1
            try:
                rows.append(self._fields(self._split_at_delimiters(text[at:end])))
            except SqlError as error:
                return Scanned(rows, lines, size, True, self._place.mark(error, line))
            lines.append(line)
            at = min(end + len(newline), size)
        return Scanned(rows, lines, at)

    def _split_at_delimiters(self, line: str) -> list[str]:
        fields: list[str] = []
        delimiter, goes_on = self._options.delimiter, False
        for part in line.split(delimiter):
            if goes_on:
                fields[-1] += delimiter + part
            else:
                fields.append(part)
            goes_on = part.endswith("\\") and _ends_escaped(fields[-1])
        return fields


def _ends_escaped(text: str) -> bool:
    """Whether a text ends with a backslash that escapes the next character: an odd number of them."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _unescaped(field: str) -> str:
    """The value of a field with backslashes. Raises SqlError 22021 if the bytes of octal and hexadecimal escapes are not UTF-8."""
    data = _ESCAPE.sub(_byte, field.encode())
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        shown = " ".join(f"0x{byte:02x}" for byte in data[error.start : error.end])
        raise SqlError("22021", f'invalid byte sequence for encoding "UTF8": {shown}') from None
    if "\0" in text:
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    return text


def _byte(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, letter = match.groups()
    if octal is not None:
        return bytes((int(octal, 8) & 0xFF,))
    if hexadecimal is not None:
        return bytes((int(hexadecimal, 16),))
    return _LETTERS.get(letter, letter) if letter is not None else b""


class TextWriter:
    """Writes rows of the text format."""

    def __init__(self, options: CopyOptions) -> None:
        self._options = options
        escapes = {**_ESCAPED, options.delimiter: "\\" + options.delimiter}
        if options.delimiter in _ESCAPED:
            escapes[options.delimiter] = _ESCAPED[options.delimiter]
        self._special = re.compile("[" + re.escape("".join(escapes)) + "]")
        self._escapes = escapes

    def header(self, names: Sequence[str]) -> str:
        """The line of the columns' names."""
        return self._options.delimiter.join([self._special.sub(self._escape, name) for name in names]) + "\n"

    def lines(self, rows: Sequence[Sequence[str | None]]) -> list[str]:
        """Each row with its line end. A column without NULL and special characters is written as it is."""
        columns = [self._column(column) for column in zip(*rows, strict=True)]
        join = self._options.delimiter.join
        return [join(fields) + "\n" for fields in zip(*columns, strict=True)]

    def _column(self, column: Sequence[str | None]) -> Sequence[str]:
        null, special = self._options.null, self._special
        texts = [field for field in column if field is not None]
        if len(texts) == len(column) and not special.search("".join(texts)):
            return texts
        return [null if field is None else special.sub(self._escape, field) for field in column]

    def _escape(self, match: re.Match[str]) -> str:
        return self._escapes[match[0]]
