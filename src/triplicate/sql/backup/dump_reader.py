"""Reading a dump of ``pg_dump`` as a stream: statements, and the data behind COPY in blocks. All functions block."""

from __future__ import annotations

import re
from collections.abc import Iterator

from triplicate.errors import ArgumentError
from triplicate.runtime import File
from triplicate.sql.backup.core.dump_text import DumpStatement, StatementSplitter
from triplicate.sql.pg.values.copy_lines import ROW_BYTES_MAX

STATEMENT_CHARACTERS_MAX = 64 * 1024 * 1024
_READ_BYTES = 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DATA_END = re.compile(rb"^\\\.\r?\n", re.MULTILINE)


class DumpReader:
    """Reads one file from its beginning to its end. It holds one statement, or one block of data with the row that follows it.

    Args:
        path: names the file in errors.

    Attributes:
        line: the number of lines that were read.
    """

    def __init__(self, file: File, path: str) -> None:
        self._file = file
        self._path = path
        self._offset = 0
        self._held = b""
        self._at = 0
        self.line = 0
        self._is_in_data = False

    def statements(self) -> Iterator[DumpStatement]:
        """The statements. Behind COPY … FROM stdin, `data` must be read to its end before the next one is asked for.

        Raises:
            ArgumentError: the text is no UTF-8, ends too early, or has a statement that is too long.
        """
        splitter = StatementSplitter()
        while line := self._next_line():
            try:
                text = line.decode()
            except UnicodeDecodeError:
                raise self.error("the text is no UTF-8: write it with `pg_dump --encoding=UTF8`") from None
            if self.line == 1:
                text = text.removeprefix(_BYTE_ORDER_MARK.decode())
            yield from splitter.feed(text, self.line)
            if splitter.held_characters > STATEMENT_CHARACTERS_MAX:
                raise self.error(f"the statement has more than {STATEMENT_CHARACTERS_MAX} characters", splitter.first_line)
        if splitter.first_line:
            raise self.error(f"the text ends, at line {self.line}, within this statement", splitter.first_line)
        if not splitter.is_complete:
            raise ArgumentError(f"{self._path} is not complete: the last comment that pg_dump writes is missing, behind line {self.line}")

    def data(self) -> Iterator[bytes]:
        """The lines behind COPY in blocks of whole ones, without the line that ends them.

        Raises:
            ArgumentError: the text ends before that line, or a line is too long.
        """
        first = self.line
        while True:
            end = _DATA_END.search(self._held, self._at)
            if end is not None:
                yield from self._block(end.start())
                self._at = end.end()
                self.line += 1
                return
            yield from self._block(self._held.rfind(b"\n") + 1)
            if not self._read_more():
                raise self.error(f"the text ends within the data of COPY of line {first}")

    def error(self, reason: str, line: int | None = None) -> ArgumentError:
        return ArgumentError(f"{self._path}, line {self.line if line is None else line}: {reason}")

    def _block(self, end: int) -> Iterator[bytes]:
        if end > self._at:
            block = self._held[self._at : end]
            self._at = end
            yield block
            self.line += block.count(b"\n")

    def _next_line(self) -> bytes:
        while (end := self._held.find(b"\n", self._at) + 1) == 0:
            if not self._read_more():
                end = len(self._held)
                break
        line = self._held[self._at : end]
        self._at = end
        self.line += bool(line)
        return line

    def _read_more(self) -> bool:
        """Read on behind what is held; False at the end of the file."""
        if len(self._held) - self._at > max(ROW_BYTES_MAX, STATEMENT_CHARACTERS_MAX):
            raise self.error("the line is too long", self.line + 1)
        data = self._file.pread(_READ_BYTES, self._offset)
        self._offset += len(data)
        self._held = self._held[self._at :] + data
        self._at = 0
        return bool(data)
