"""Replies of a server, read from the bytes as they arrive: the side of a client, with limits on what a server may send. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from triplicate.errors import ProtocolError
from triplicate.kv.resp.core.replies import ErrorReply, Push, Reply, Simple

REPLY_BYTES_MAX = 64 * 1024 * 1024
NESTING_MAX = 8
LINE_LIMIT_BYTES = 64 * 1024

_SINGLE = frozenset(b"+-:_#,(")
_STRINGS = frozenset(b"$=!")
_AGGREGATES = frozenset(b"*~%>")


@dataclass(slots=True)
class _Aggregate:
    """A list, map, set or push whose items are being read."""

    mark: int
    missing: int
    items: list[Reply] = field(default_factory=list)


class ReplyDecoder:
    """Splits received bytes into replies."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0
        self._bulk: tuple[int, int] | None = None
        """Mark and size of the string that is being read."""
        self._open: list[_Aggregate] = []
        self._reply_bytes = 0

    def feed(self, data: bytes) -> None:
        """Append received bytes."""
        if self._at > len(self._buffer) // 2:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    def next_reply(self) -> tuple[Reply] | None:
        """Remove the next reply, alone in a tuple; None if it has not arrived.

        Raises:
            ProtocolError: the bytes are no reply, or one beyond the limits. Nothing can be read afterwards.
        """
        while True:
            found = self._string() if self._bulk is not None else self._line()
            if found is None:
                return None
            done = self._close(found) if found else None
            if done is not None:
                self._reply_bytes = 0
                return done

    def _close(self, found: tuple[Reply]) -> tuple[Reply] | None:
        """Put a value into the aggregate that is being read. Returns the reply if it is complete."""
        while self._open:
            inner = self._open[-1]
            inner.items.append(found[0])
            inner.missing -= 1
            if inner.missing:
                return None
            self._open.pop()
            found = (_whole(inner),)
        return found

    def _string(self) -> tuple[Reply] | None:
        assert self._bulk is not None, "a string has begun"
        mark, size = self._bulk
        if len(self._buffer) - self._at < size + 2:
            return None
        end = self._at + size
        if self._buffer[end : end + 2] != b"\r\n":
            raise ProtocolError("a string is not followed by CRLF")
        with memoryview(self._buffer) as view:
            value = bytes(view[self._at : end])
        self._at, self._bulk = end + 2, None
        if mark == ord("!"):
            return (ErrorReply(value.decode("utf-8", "backslashreplace")),)
        return (value[4:] if mark == ord("=") else value,)

    def _line(self) -> tuple[Reply] | tuple[()] | None:
        """A value of one line, or an empty tuple where a longer one begins."""
        end = self._buffer.find(b"\r\n", self._at, self._at + LINE_LIMIT_BYTES)
        if end < 0:
            if len(self._buffer) - self._at >= LINE_LIMIT_BYTES:
                raise ProtocolError(f"a line has more than {LINE_LIMIT_BYTES} bytes")
            return None
        line = bytes(self._buffer[self._at : end])
        self._count(end + 2 - self._at)
        self._at = end + 2
        if not line:
            raise ProtocolError("a reply has no type")
        mark, text = line[0], line[1:]
        if mark in _SINGLE:
            return (_single(mark, text),)
        if mark not in _STRINGS and mark not in _AGGREGATES:
            raise ProtocolError(f"no reply begins with the byte {mark:#04x}")
        size = _integer(text)
        if size == -1:
            return (None,)
        if mark in _STRINGS:
            self._count(size)
            self._bulk = mark, size
            return ()
        count = 2 * size if mark == ord("%") else size
        if size < 0 or count * 3 > REPLY_BYTES_MAX or len(self._open) >= NESTING_MAX:
            raise ProtocolError("a reply has too many items, or too many levels")
        aggregate = _Aggregate(mark, count)
        if not count:
            return (_whole(aggregate),)
        self._open.append(aggregate)
        return ()

    def _count(self, size: int) -> None:
        self._reply_bytes += size
        if size < 0 or self._reply_bytes > REPLY_BYTES_MAX:
            raise ProtocolError(f"a reply has more than {REPLY_BYTES_MAX} bytes")


def _single(mark: int, text: bytes) -> Reply:
    match chr(mark):
        case "+":
            return Simple(text.decode("utf-8", "backslashreplace"))
        case "-":
            return ErrorReply(text.decode("utf-8", "backslashreplace"))
        case ":" | "(":
            return _integer(text)
        case "#" if text in (b"t", b"f"):
            return text == b"t"
        case "_" if not text:
            return None
        case "," if len(text) <= 64:
            try:
                return float(text)
            except ValueError:
                pass  # It is malformed like every other line that matches no case.
    raise ProtocolError("a reply of one line is malformed")


def _integer(text: bytes) -> int:
    digits = text[1:] if text[:1] in (b"-", b"+") else text
    if not digits.isdigit() or len(digits) > 20:
        raise ProtocolError("a number of a reply is malformed")
    return int(text)


def _whole(aggregate: _Aggregate) -> Reply:
    if aggregate.mark == ord(">"):
        return Push(tuple(aggregate.items))
    if aggregate.mark == ord("%"):
        keys, values = aggregate.items[::2], aggregate.items[1::2]
        return {key if isinstance(key, bytes) else str(key).encode(): value for key, value in zip(keys, values, strict=True)}
    return aggregate.items
