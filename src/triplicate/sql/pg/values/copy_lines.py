"""The lines of COPY's text and CSV formats: cut from data that arrive in pieces, with the header, the end marker and line numbers. Pure.

A piece may end anywhere, also within a character. Lines without special characters are split as a whole; all others are scanned.
Source: PostgreSQL 15, ``CopyReadLineText`` and ``NextCopyFromRawFields``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.pg.syntax.copy_statement import CopyHeader, CopyOptions

ROW_BYTES_MAX = 16 * 1024 * 1024
"""Upper bound on the bytes of one row."""
_SHOWN_CHARACTERS = 100
_END_MARKER = "\\."


class CopyRows(NamedTuple):
    """Complete rows of a part of the data."""

    rows: Sequence[Sequence[str | bytes | None]]
    """The fields of each row: text, or bytes in binary format; None for NULL."""
    lines: Sequence[int]
    """The number of each row's last line; the row's own number in binary format."""
    error: SqlError | None = None
    """The error of the data after these rows."""


NO_ROWS = CopyRows((), ())


class Scanned(NamedTuple):
    """The result of a scan of text that holds special characters."""

    rows: list[list[str | None]]
    lines: list[int]
    end: int
    """The position after the last complete row."""
    is_ended: bool = False
    """Whether the end marker was found."""
    error: SqlError | None = None
    """Why the scan has ended before the end of the text."""


class CopyPlace(NamedTuple):
    """Where an error was found, for its context."""

    table: str
    lines_before: int = 0
    """Lines of a file before the data; 0 for the data of a client."""
    statement: str = "COPY"

    def error(
        self, sqlstate: str, message: str, line: int, *, column: str = "", shown: str | None = None, hint: str | None = None
    ) -> SqlError:
        """An error of the data at a line."""
        return self.mark(SqlError(sqlstate, message, hint=hint), line, column=column, shown=shown)

    def mark(self, error: SqlError, line: int, *, column: str = "", shown: str | None = None) -> SqlError:
        """Add the context in PostgreSQL's form to an error; returns the error.

        Args:
            shown: the value or the line.
        """
        context = f"{self.statement} {self.table}, line {self.lines_before + line}" + (f", column {column}" if column else "")
        if shown is not None:
            context += f': "{shown if len(shown) <= _SHOWN_CHARACTERS else shown[:_SHOWN_CHARACTERS] + "..."}"'
        error.context = context
        return error


class LineReader(ABC):
    """Reads rows of text or CSV.

    Args:
        columns: names of the columns, which a header must match with HEADER MATCH.
    """

    def __init__(self, options: CopyOptions, place: CopyPlace, columns: Sequence[str]) -> None:
        self._options = options
        self._place = place
        self._columns = columns
        self._rest = b""
        """The beginning of an incomplete row."""
        self._wanted = 0
        """Bytes that must have arrived before the next attempt to find the end of a long row."""
        self._newline = ""
        """The line end of the data: the one of the first line; empty before it has arrived."""
        self._line = 0
        """Number of the last line of the rows so far."""
        self._expects_header = options.header is not CopyHeader.NONE
        self._is_ended = False
        """Whether the end marker was found. All data after it are ignored."""

    def feed(self, data: bytes) -> CopyRows:
        """Add received data; returns the rows that are complete now.

        The error of malformed data (22P04) and of text that is not UTF-8 (22021) comes with the rows before it, whose fields may have
        errors too.

        Raises:
            SqlError: 22P04 for a header with other names, 54000 for a row that is too long.
        """
        if self._is_ended:
            return NO_ROWS
        buffered = self._rest + data if self._rest else data
        if len(buffered) < min(self._wanted, ROW_BYTES_MAX):
            self._rest = buffered
            return NO_ROWS
        if not self._newline:
            self._newline = self._find_newline(buffered)
        end = buffered.rfind(b"\r" if self._newline == "\r" else b"\n") + 1 if self._newline else 0
        return self._read(buffered[:end], buffered[end:])

    def finish(self) -> CopyRows:
        """The data are complete; returns the last row if its line has no end. Raises SqlError as `feed`."""
        if self._is_ended or not self._rest:
            return NO_ROWS
        self._newline = self._newline or self._find_newline(self._rest) or ("\r" if self._rest.endswith(b"\r") else "\n")
        text, error = self._decode(self._rest)
        return self._counted(self._read_scanned(text, b"", is_last=error is None), error)

    def _read(self, block: bytes, rest: bytes) -> CopyRows:
        """Read the rows of a block that ends with a line end, which may be a part of a row."""
        text, error = self._decode(block)
        plain = self._plain_rows(text)
        if plain is None:
            found = self._read_scanned(text, rest, is_last=False)
        else:
            found = CopyRows(plain, range(self._line + 1, self._line + 1 + len(plain)))
            self._rest = rest
        if len(self._rest) > ROW_BYTES_MAX:
            raise self._place.error("54000", f"a row of the data has more than {ROW_BYTES_MAX} bytes", self._line + 1)
        # A long row is scanned again only when its data have doubled, so that the time stays proportional to its size.
        self._wanted = 0 if found.rows else 2 * len(self._rest)
        return self._counted(found, error)

    def _read_scanned(self, text: str, rest: bytes, *, is_last: bool) -> CopyRows:
        scanned = self._scan(text, self._line, is_last=is_last)
        self._is_ended = scanned.is_ended
        self._rest = text[scanned.end :].encode() + rest
        return CopyRows(scanned.rows, scanned.lines, scanned.error)

    def _counted(self, found: CopyRows, error: SqlError | None) -> CopyRows:
        """Count the lines of rows, and remove the header.

        Args:
            error: of the text after these rows.
        """
        if error is not None and not self._is_ended:
            found = CopyRows(found.rows, found.lines, error)
        if not found.rows:
            return found
        self._line = found.lines[-1]
        if not self._expects_header:
            return found
        self._expects_header = False
        if self._options.header is CopyHeader.MATCH:
            self._check_header(found.rows[0], found.lines[0])
        return CopyRows(found.rows[1:], found.lines[1:])

    def _decode(self, block: bytes) -> tuple[str, SqlError | None]:
        """(the text of a block, None), or (its lines before the first one that is not UTF-8, the error of that line)"""
        try:
            text, wrong, shown = block.decode(), block.find(b"\0"), "0x00"
        except UnicodeDecodeError as error:
            wrong, shown = error.start, " ".join(f"0x{byte:02x}" for byte in block[error.start : error.end])
        if wrong < 0:
            return text, None
        end = block.rfind(b"\r" if self._newline == "\r" else b"\n", 0, wrong) + 1
        valid = block[:end].decode()
        line = self._line + 1 + valid.count(self._newline)
        return valid, self._place.error("22021", f'invalid byte sequence for encoding "UTF8": {shown}', line)

    def _plain_rows(self, text: str) -> list[list[str | None]] | None:
        """The rows if the text can be split at line ends and delimiters, else None. An error is left to the scan, which knows its line."""
        newline = self._newline
        if newline == "\n":
            if "\r" in text:
                return None
        elif newline == "\r\n":
            if not text.count("\r\n") == text.count("\r") == text.count("\n"):
                return None
        elif "\n" in text:
            return None
        if not text:
            return []
        text = text if newline == "\n" else text.replace(newline, "\n")
        if _END_MARKER in text:
            return None
        try:
            return self._split(text)
        except SqlError:
            return None

    def _check_header(self, names: Sequence[str | bytes | None], line: int) -> None:
        columns = self._columns
        if len(names) != len(columns):
            raise self._place.error("22P04", f"wrong number of fields in header line: got {len(names)}, expected {len(columns)}", line)
        for number, (name, column) in enumerate(zip(names, columns, strict=True), start=1):
            if name is None:
                raise self._place.error(
                    "22P04",
                    f'column name mismatch in header line field {number}: got null value ("{self._options.null}"), expected "{column}"',
                    line,
                )
            if name != column:
                raise self._place.error(
                    "22P04", f'column name mismatch in header line field {number}: got "{name!s}", expected "{column}"', line
                )

    def _wrong_line_end(self, text: str, at: int, line: int, kind: str, advice: str) -> SqlError:
        """The error for a line end other than that of the first line."""
        what, shown = ("carriage return", "\\r") if text[at] == "\r" else ("newline", "\\n")
        return self._place.error("22P04", f"{kind} {what} found in data", line, hint=advice.format(what=what, shown=shown))

    @abstractmethod
    def _find_newline(self, data: bytes) -> str:
        """The end of the first line, or an empty text if it has not arrived completely."""

    @abstractmethod
    def _split(self, text: str) -> list[list[str | None]] | None:
        """The fields of each line of a text with equal line ends, ``\\n``; None if the text needs a scan."""

    @abstractmethod
    def _scan(self, text: str, line: int, *, is_last: bool) -> Scanned:
        """Read rows of a text that holds special characters.

        Args:
            line: number of the line before. is_last: whether no data follow.
        """
