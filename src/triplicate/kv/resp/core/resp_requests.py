"""Requests of a client, read from the bytes as they arrive.

A request is an array of bulk strings, or one line of words (an inline command, as typed in telnet). Each byte is looked at a bounded number
of times, however the bytes are cut. Source: Redis documentation, "RESP protocol description"; its error texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from triplicate.errors import ProtocolError

LINE_BYTES_MAX = 64 * 1024
"""Of an inline command."""
HEADER_BYTES_MAX = 32
"""Of a line that announces a count or a size."""

_ARRAY, _BULK = ord("*"), ord("$")
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}
_WORD = re.compile(
    rb"""[ \t\r\n\0]*(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<bare>[^\s"'\0]+))(?=[ \t\r\n\0]|$)""", re.DOTALL
)
_ESCAPED = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WordLimits:
    """Limits on one request."""

    arguments: int
    request_bytes: int
    """Sum of the sizes of the arguments, so of each of them as well."""


BEFORE_LOGIN = WordLimits(10, 16 * 1024)
"""Limits on a client that has not logged in. Redis has the same."""


class RequestBuffer:
    """Splits received bytes into requests.

    Args:
        limits: may be replaced between two requests.
    """

    def __init__(self, limits: WordLimits) -> None:
        self.limits = limits
        self._data = b""
        self._at = 0
        """Where the next unread byte stands in `_data`."""
        self._later: list[bytes] = []
        """Chunks behind `_data`."""
        self._size = 0
        """Unread bytes, in `_data` and in the chunks behind it."""
        self._needed = 1
        """Unread bytes without which there is nothing to do."""
        self._arguments: list[bytes] = []
        self._missing = 0
        """Arguments of the present request that have not arrived."""
        self._bulk_bytes = -1
        """Size of the argument that is being received; -1 before its header."""
        self._request_bytes = 0

    @property
    def size(self) -> int:
        """Bytes that have arrived and belong to no argument yet."""
        return self._size

    @property
    def is_begun(self) -> bool:
        """Whether part of a request has arrived, or more."""
        return self._size > 0 or self._missing > 0

    def feed(self, data: bytes) -> None:
        """Append received bytes."""
        if self._at == len(self._data) and not self._later:
            self._data, self._at = data, 0
        else:
            self._later.append(data)
        self._size += len(data)

    def next_request(self) -> list[bytes] | None:
        """Remove the next request: its words, at least one. None if it has not arrived.

        Raises:
            ProtocolError: the bytes are no request, or one beyond the limits. Nothing can be read afterwards.
        """
        while self._size >= self._needed:
            if self._later:
                self._data, self._at = b"".join([self._data[self._at :], *self._later]), 0
                self._later.clear()
            request = self._continue() if self._missing else self._begin()
            if request:
                return request
            if request is None:
                return None
        return None

    def _begin(self) -> list[bytes] | None:
        """Read the first line of a request. Returns an inline command, an empty list to go on, or None to wait."""
        if self._data[self._at] != _ARRAY:
            return self._inline()
        count = self._header(_ARRAY, "multibulk")
        if count is None:
            return None
        if count > self.limits.arguments:
            raise ProtocolError(self._refusal("multibulk"))
        self._missing = max(count, 0)
        self._arguments, self._request_bytes = [], 0
        return []

    def _continue(self) -> list[bytes] | None:
        """Read arguments. Returns the request, or None to wait."""
        while self._missing:
            if self._bulk_bytes < 0:
                size = self._header(_BULK, "bulk")
                if size is None:
                    return None
                self._request_bytes += size
                if size < 0 or self._request_bytes > self.limits.request_bytes:
                    raise ProtocolError(self._refusal("bulk"))
                self._bulk_bytes = size
            size = self._bulk_bytes
            if self._size < size + 2:
                self._needed = size + 2
                return None
            end = self._at + size
            if not self._data.startswith(b"\r\n", end):
                raise ProtocolError("expected CRLF behind a bulk string")
            self._arguments.append(self._data[self._at : end])
            self._consume(size + 2)
            self._bulk_bytes = -1
            self._missing -= 1
        request, self._arguments = self._arguments, []
        return request

    def _header(self, mark: int, name: str) -> int | None:
        """Read a line that announces a number; None if it has not arrived."""
        data, at = self._data, self._at
        end = data.find(b"\r\n", at, at + HEADER_BYTES_MAX)
        if end > at and data[at] == mark:
            digits = data[at + 1 : end]
            if digits.isdigit():
                self._consume(end + 2 - at)
                return int(digits)
        return self._unusual_header(mark, name)

    def _unusual_header(self, mark: int, name: str) -> int | None:
        """Read a line that is incomplete, has a negative number, or is wrong."""
        if self._at == len(self._data):
            self._needed = 1
            return None
        if self._data[self._at] != mark:
            raise ProtocolError(f"expected '{chr(mark)}', got '{_shown(self._data[self._at])}'")
        end = self._data.find(b"\r\n", self._at, self._at + HEADER_BYTES_MAX)
        if end < 0:
            if self._size >= HEADER_BYTES_MAX:
                raise ProtocolError(f"too big {'mbulk' if mark == _ARRAY else 'bulk'} count string")
            self._needed = self._size + 1
            return None
        text = self._data[self._at + 1 : end]
        digits = text[1:] if text[:1] == b"-" else text
        if not digits.isdigit():
            raise ProtocolError(f"invalid {name} length")
        self._consume(end + 2 - self._at)
        return int(text)

    def _inline(self) -> list[bytes] | None:
        """Read a line of words; an empty list if it has none."""
        limit = min(LINE_BYTES_MAX, self.limits.request_bytes)
        end = self._data.find(b"\n", self._at, self._at + limit)
        if end < 0 and self._size >= limit:
            raise ProtocolError("too big inline request")
        if end < 0:
            self._needed = self._size + 1
            return None
        line = self._data[self._at : end]
        self._consume(end + 1 - self._at)
        words = split_words(line)
        if len(words) > self.limits.arguments:
            raise ProtocolError(self._refusal("multibulk"))
        return words

    def _consume(self, size: int) -> None:
        self._at += size
        self._size -= size
        self._needed = 1

    def _refusal(self, name: str) -> str:
        return f"unauthenticated {name} length" if self.limits is BEFORE_LOGIN else f"invalid {name} length"


def split_words(line: bytes) -> list[bytes]:
    """The words of an inline command. Quotes hold words together; between double quotes a backslash begins an escape, as in Redis.

    Raises:
        ProtocolError: a quote is not closed, or stands within a word.
    """
    words: list[bytes] = []
    line = line.rstrip(b" \t\r\n\0")
    at = 0
    while at < len(line):
        found = _WORD.match(line, at)
        if found is None:
            raise ProtocolError("unbalanced quotes in request")
        double, single, bare = found["double"], found["single"], found["bare"]
        words.append(_unescaped(double) if double is not None else single.replace(b"\\'", b"'") if single is not None else bare)
        at = found.end()
    return words


def _unescaped(text: bytes) -> bytes:
    def meaning(found: re.Match[bytes]) -> bytes:
        escape = found[1]
        return bytes.fromhex(escape[1:].decode()) if len(escape) == 3 else _ESCAPES.get(escape, escape)

    return _ESCAPED.sub(meaning, text)


def _shown(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}"
