"""COPY's CSV format: fields between delimiters, which may be quoted. Pure.

Source: PostgreSQL 15 documentation, "COPY", section "CSV Format"; ``CopyReadAttributesCSV`` and ``CopyAttributeOutCSV``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence

from triplicate.sql.pg.syntax.copy_statement import CopyOptions
from triplicate.sql.pg.values.copy_lines import CopyPlace, LineReader, Scanned

_ADVICE = "Use quoted CSV field to represent {what}."


class CsvReader(LineReader):
    """Reads rows of the CSV format."""

    def __init__(self, options: CopyOptions, place: CopyPlace, columns: Sequence[str]) -> None:
        super().__init__(options, place, columns)
        quote, escape, delimiter = map(re.escape, (options.quote, options.escape, options.delimiter))
        both = f"[{quote}{escape}]"
        inside = f"[^{quote}]++|{quote}{quote}" if quote == escape else f"[^{quote}{escape}]++|{escape}{both}|{escape}(?!{both})"
        quoted = f"{quote}(?:{inside})*+{quote}"
        self._line_pattern = re.compile(f"(?:[^{quote}\r\n]++|{quoted})*+", re.DOTALL)
        self._first_line = re.compile(f"(?:[^{quote}\r\n]++|{quoted})*+(\r\n?|\n)".encode(), re.DOTALL)
        self._field_pattern = re.compile(f"(?:[^{quote}{delimiter}]++|{quoted})*+", re.DOTALL)
        self._quoted = re.compile(quoted, re.DOTALL)
        self._escaped = re.compile(f"{escape}({both})")
        field = f"{quote}[^{quote}\n]*+{quote}|[^{quote}{delimiter}\n]*+"
        self._simple = re.compile(f"(?:(?:{field})[{delimiter}\n])*+") if quote == escape else None
        self._quoted_null = options.quote + options.null + options.quote
        names = list(columns)
        self._not_null = frozenset(names.index(name) for name in options.force_not_null)
        self._null = frozenset(names.index(name) for name in options.force_null)

    def _find_newline(self, data: bytes) -> str:
        first = self._first_line.match(data)
        if first is None or (first[1] == b"\r" and first.end() == len(data)):
            return ""
        return first[1].decode()

    def _split(self, text: str) -> list[list[str | None]] | None:
        delimiter, null = self._options.delimiter, self._options.null
        lines = text.split("\n")
        lines.pop()
        rows: Iterable[list[str]]
        if self._options.quote in text:
            if not self._is_simply_quoted(text):
                return None
            rows = csv.reader(lines, delimiter=delimiter, quotechar=self._options.quote, doublequote=True, strict=True)
        else:
            rows = (line.split(delimiter) for line in lines)
        try:
            if self._not_null:
                return [self._unquoted(row) for row in rows]
            return [[None if field == null else field for field in row] for row in rows]
        except csv.Error:
            return None  # A field is longer than Python's module reads.

    def _is_simply_quoted(self, text: str) -> bool:
        """Whether quotes enclose whole fields, without quotes, line ends and the text of NULL within them, and no line is empty."""
        if self._simple is None or self._quoted_null in text or "\n\n" in text or text[0] == "\n":
            return False
        return self._simple.fullmatch(text) is not None

    def _unquoted(self, fields: list[str]) -> list[str | None]:
        null, not_null = self._options.null, self._not_null
        return [None if field == null and index not in not_null else field for index, field in enumerate(fields)]

    def _scan(self, text: str, line: int, *, is_last: bool) -> Scanned:
        newline, at, size = self._newline, 0, len(text)
        rows: list[list[str | None]] = []
        lines: list[int] = []
        while at < size:
            # PostgreSQL counts the line ends within quotes. Within the first row it does not know yet which characters they are.
            counted = "\n" if newline == "\n" and line else "\r"
            found = self._line_pattern.match(text, at)
            assert found is not None, "the pattern matches an empty text"
            end = found.end()
            if end < size and text[end] == self._options.quote:
                if is_last:
                    line += 1 + text.count(counted, at)
                    return Scanned(rows, lines, size, True, self._place.error("22P04", "unterminated CSV quoted field", line))
                break
            if end == size and not is_last:
                break
            if text[at:end] == "\\.":
                corrupt = self._place.error("22P04", "end-of-copy marker corrupt", line + 1) if end == size else None
                return Scanned(rows, lines, size, True, corrupt)
            line += 1 + text.count(counted, at, end)
            if end < size and not text.startswith(newline, end):
                return Scanned(rows, lines, size, True, self._wrong_line_end(text, end, line, "unquoted", _ADVICE))
            rows.append(self._fields(text[at:end]))
            lines.append(line)
            at = min(end + len(newline), size)
        return Scanned(rows, lines, at)

    def _fields(self, line: str) -> list[str | None]:
        delimiter, quote = self._options.delimiter, self._options.quote
        if quote not in line:
            return self._unquoted(line.split(delimiter))
        fields: list[str | None] = []
        at = 0
        while True:
            found = self._field_pattern.match(line, at)
            assert found is not None, "the pattern matches an empty text"
            fields.append(self._value(found.group(), len(fields)))
            at = found.end() + 1
            if at > len(line):
                return fields

    def _value(self, field: str, index: int) -> str | None:
        if self._options.quote not in field:
            return None if field == self._options.null and index not in self._not_null else field
        value = self._quoted.sub(self._without_quotes, field)
        return None if index in self._null and value == self._options.null else value

    def _without_quotes(self, match: re.Match[str]) -> str:
        inner = match[0][1:-1]
        return self._escaped.sub(r"\1", inner) if self._options.escape in inner else inner


class CsvWriter:
    """Writes rows of the CSV format.

    Args:
        columns: names of the columns.
    """

    def __init__(self, options: CopyOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._forced = frozenset(index for index, name in enumerate(columns) if options.force_quote is None or name in options.force_quote)
        self._is_single = len(columns) == 1
        self._special = re.compile("[" + re.escape(options.delimiter + options.quote) + "\r\n]")
        self._escaped = re.compile("[" + re.escape(options.quote + options.escape) + "]")

    def lines(self, rows: Sequence[Sequence[str | None]]) -> list[str]:
        """Each row with its line end."""
        return [self._line(row) for row in rows]

    def _line(self, row: Sequence[str | None]) -> str:
        null = self._options.null
        shown = [null if field is None else self._field(field, index in self._forced) for index, field in enumerate(row)]
        return self._options.delimiter.join(shown) + "\n"

    def header(self, names: Sequence[str]) -> str:
        """The line of the columns' names."""
        return self._options.delimiter.join([self._field(name, False) for name in names]) + "\n"

    def _field(self, field: str, is_forced: bool) -> str:
        # The end marker as the only field of a row would end the data.
        if is_forced or field == self._options.null or self._special.search(field) or (self._is_single and field == "\\."):
            quote, escape = self._options.quote, self._options.escape
            return quote + self._escaped.sub(lambda match: escape + match[0], field) + quote
        return field
