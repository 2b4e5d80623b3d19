"""Codec of PostgreSQL's messages, protocol 3.0. Pure: no I/O, no SQL.

Source: PostgreSQL 15 documentation, chapter "Frontend/Backend Protocol", sections "Message Formats" and "Error and Notice Message Fields".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from triplicate.errors import FrameTooLarge, ProtocolError, SqlError, Violation

SSL_REQUEST = 80877103
GSS_ENCRYPTION_REQUEST = 80877104
CANCEL_REQUEST = 80877102
PROTOCOL_MAJOR = 3
STARTUP_BYTES_MAX = 10_000
"""PostgreSQL's own limit for the first packet."""

_REPEATED_TAGS = 1000
"""Command tags whose messages are kept. Most commands have a tag of few rows."""

_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")
_UINT16 = struct.Struct(">H")


# Messages of the client.


@dataclass(slots=True)
class Startup:
    """The first packet. `code` is the protocol version, or one of the request codes above."""

    code: int
    parameters: dict[str, str] = field(default_factory=dict)
    process_id: int = 0
    secret: int = 0


@dataclass(slots=True)
class Query:
    sql: str


@dataclass(slots=True)
class Parse:
    name: str
    sql: str
    parameter_oids: tuple[int, ...]


@dataclass(slots=True)
class Bind:
    portal: str
    statement: str
    parameter_formats: tuple[int, ...]
    parameters: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(slots=True)
class Describe:
    is_portal: bool
    name: str


@dataclass(slots=True)
class Execute:
    portal: str
    max_rows: int


@dataclass(slots=True)
class Close:
    is_portal: bool
    name: str


@dataclass(slots=True)
class Sync:
    pass


@dataclass(slots=True)
class Flush:
    pass


@dataclass(slots=True)
class Terminate:
    pass


@dataclass(slots=True)
class Unsupported:
    """A message of the protocol that is not decoded: function call, COPY data, password."""

    letter: str


ClientMessage = Query | Parse | Bind | Describe | Execute | Close | Sync | Flush | Terminate | Unsupported


def _text(body: bytes, at: int) -> tuple[str, int]:
    """(the string at `at`, the position after it)."""
    end = body.find(b"\0", at)
    if end == at:
        return "", at + 1
    if end < 0:
        raise ProtocolError("a string in a message is not terminated; the client breaks the protocol")
    try:
        return body[at:end].decode(), end + 1
    except UnicodeDecodeError as error:
        raise SqlError("22021", f"a string in a message is not valid UTF-8: {error.reason} at byte {error.start}") from None


def _count(body: bytes, at: int) -> int:
    if at + 2 > len(body):
        raise _too_short()
    count = int(_UINT16.unpack_from(body, at)[0])
    if count > len(body):
        raise ProtocolError("a message claims more items than it has bytes; the client breaks the protocol")
    return count


def _numbers(body: bytes, at: int, letter: str, size: int) -> tuple[tuple[int, ...], int]:
    """(the numbers of a list, the position after it). Each has `size` bytes and the format `letter` of `struct`."""
    if body[at : at + 2] == b"\0\0":
        return (), at + 2
    count = _count(body, at)
    end = at + 2 + count * size
    if end > len(body):
        raise _too_short()
    return struct.unpack_from(f">{count}{letter}", body, at + 2), end


def _values(body: bytes, at: int) -> tuple[tuple[bytes | None, ...], int]:
    """(the values of a list, the position after it). Each has its size before it, -1 for NULL."""
    count = _count(body, at)
    at += 2
    values: list[bytes | None] = []
    try:
        for _ in range(count):
            (size,) = _INT32.unpack_from(body, at)
            at += 4
            if size >= 0:
                values.append(body[at : at + size])
                at += size
            elif size == -1:
                values.append(None)
            else:
                raise _too_short()
    except struct.error:
        raise _too_short() from None
    if at > len(body):
        raise _too_short()
    return tuple(values), at


def _int32(body: bytes, at: int) -> tuple[int, int]:
    if at + 4 > len(body):
        raise _too_short()
    return int(_INT32.unpack_from(body, at)[0]), at + 4


def _too_short() -> ProtocolError:
    return ProtocolError("a message is shorter than its fields say; the client breaks the protocol")


def decode_startup(body: bytes) -> Startup:
    """Decode the first packet's body, after its length. Raises ProtocolError, SqlError 22021."""
    code, at = _int32(body, 0)
    if code == CANCEL_REQUEST:
        process_id, at = _int32(body, at)
        return Startup(code, process_id=process_id, secret=_int32(body, at)[0])
    if code in (SSL_REQUEST, GSS_ENCRYPTION_REQUEST):
        return Startup(code)
    parameters: dict[str, str] = {}
    name, at = _text(body, at)
    while name:
        parameters[name], at = _text(body, at)
        name, at = _text(body, at)
    return Startup(code, parameters)


def _query(body: bytes) -> tuple[ClientMessage, int]:
    sql, at = _text(body, 0)
    return Query(sql), at


def _parse(body: bytes) -> tuple[ClientMessage, int]:
    name, at = _text(body, 0)
    sql, at = _text(body, at)
    oids, at = _numbers(body, at, "I", 4)
    return Parse(name, sql, oids), at


def _bind(body: bytes) -> tuple[ClientMessage, int]:
    portal, at = _text(body, 0)
    statement, at = _text(body, at)
    formats, at = _numbers(body, at, "h", 2)
    values, at = _values(body, at)
    result_formats, at = _numbers(body, at, "h", 2)
    return Bind(portal, statement, formats, values, result_formats), at


def _is_portal(body: bytes) -> bool:
    if not body:
        raise _too_short()
    if body[0] not in b"SP":
        raise ProtocolError(f"{body[:1]!r} is neither a statement nor a portal")
    return body[0] == 0x50


def _describe(body: bytes) -> tuple[ClientMessage, int]:
    if body == b"P\0":
        return _DESCRIBE_UNNAMED_PORTAL, 2
    is_portal = _is_portal(body)
    name, at = _text(body, 1)
    return Describe(is_portal, name), at


def _close(body: bytes) -> tuple[ClientMessage, int]:
    is_portal = _is_portal(body)
    name, at = _text(body, 1)
    return Close(is_portal, name), at


def _execute(body: bytes) -> tuple[ClientMessage, int]:
    if body == b"\0\0\0\0\0":
        return _EXECUTE_UNNAMED, 5
    portal, at = _text(body, 0)
    rows, at = _int32(body, at)
    return Execute(portal, rows), at


_DESCRIBE_UNNAMED_PORTAL, _EXECUTE_UNNAMED = Describe(True, ""), Execute("", 0)
"""Messages that most clients send for each statement, which are not decoded again."""
_DECODERS: dict[bytes, Callable[[bytes], tuple[ClientMessage, int]]] = {
    b"B": _bind,
    b"C": _close,
    b"D": _describe,
    b"E": _execute,
    b"P": _parse,
    b"Q": _query,
}
"""Maps a message's letter to a function from its body to (message, position after its fields)."""
_SYNC = Sync()
_WITHOUT_FIELDS: dict[bytes, ClientMessage] = {b"S": _SYNC, b"H": Flush(), b"X": Terminate()}
_UNSUPPORTED = (b"F", b"d", b"c", b"f", b"p")


def decode_message(letter: bytes, body: bytes) -> ClientMessage:
    """Decode one message.

    Args:
        letter: the type, one byte.
        body: the bytes after the length.

    Raises:
        ProtocolError: an unknown letter or malformed fields.
        SqlError: 22021 for text that is not UTF-8.
    """
    if letter == b"S" and not body:
        return _SYNC
    decoder = _DECODERS.get(letter)
    if decoder is not None:
        message, at = decoder(body)
    elif letter in _WITHOUT_FIELDS:
        message, at = _WITHOUT_FIELDS[letter], 0
    elif letter in _UNSUPPORTED:
        return Unsupported(letter.decode())
    else:
        raise ProtocolError(f"unknown message type {letter!r}; the client breaks the protocol")
    if at != len(body):
        raise ProtocolError(f"a message has {len(body) - at} bytes too many; the client breaks the protocol")
    return message


class BindShape(NamedTuple):
    """The parts that the Bind messages of one statement have in common: all but the values."""

    portal: str
    statement: str
    parameter_formats: tuple[int, ...]
    result_formats: tuple[int, ...]
    values_count: int
    head: bytes
    """The body before the values, with their number."""
    tail: bytes
    """The body after the values."""

    def values(self, body: bytes) -> tuple[bytes | None, ...] | None:
        """The values of a body; None if it has another shape, or is malformed."""
        _, _, _, _, count, head, tail = self
        if not (body.startswith(head) and body.endswith(tail)):
            return None
        at, end = len(head), len(body) - len(tail)
        values: list[bytes | None] = []
        for _ in range(count):
            start = at + 4
            if start > end:
                return None
            size = int.from_bytes(body[at:start], "big", signed=True)
            if size >= 0:
                at = start + size
                values.append(body[start:at])
            elif size == -1:
                at = start
                values.append(None)
            else:
                return None
        return tuple(values) if at == end else None


def bind_shape(body: bytes) -> BindShape:
    """The shape of a Bind message. Raises as `decode_message`."""
    portal, at = _text(body, 0)
    statement, at = _text(body, at)
    formats, at = _numbers(body, at, "h", 2)
    values, end = _values(body, at)
    result_formats, last = _numbers(body, end, "h", 2)
    if last != len(body):
        raise ProtocolError(f"a message has {len(body) - last} bytes too many; the client breaks the protocol")
    return BindShape(portal, statement, formats, result_formats, len(values), body[: at + 2], body[end:])


def copy_fail_reason(body: bytes) -> str:
    """The reason in CopyFail, by which the client gives COPY FROM up. Raises as `decode_message`."""
    return _text(body, 0)[0]


class MessageBuffer:
    """Splits a byte stream into messages, one at a time, however its chunks are cut.

    Args:
        limit_bytes: the largest message accepted.
    """

    __slots__ = ("_at", "_data", "_later", "_later_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._data = b""
        self._at = 0
        """The position of the next message in `_data`."""
        self._later: list[bytes] = []
        """Chunks after `_data`. They are joined to it when they complete a message, so that each byte is copied a few times at most."""
        self._later_bytes = 0

    @property
    def size(self) -> int:
        """Bytes that are buffered."""
        return len(self._data) - self._at + self._later_bytes

    @property
    def is_begun(self) -> bool:
        """Whether any byte is buffered."""
        return self._at < len(self._data) or bool(self._later)

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        if self._at == len(self._data) and not self._later:
            self._data, self._at = data, 0
        else:
            self._later.append(data)
            self._later_bytes += len(data)

    def next_startup(self) -> Startup | None:
        """The first packet, or None until it is complete. After SSL and GSS requests the client sends another one. Raises ProtocolError."""
        if self._later:
            self._join()
        if self.size < 4:
            return None
        size = _INT32.unpack_from(self._data, self._at)[0]
        if not 8 <= size <= STARTUP_BYTES_MAX:
            raise ProtocolError(f"the first packet claims {size} bytes; this is a PostgreSQL port")
        if self.size < size:
            return None
        body = self._data[self._at + 4 : self._at + size]
        self._at += size
        return decode_startup(body)

    def peek(self) -> bytes | None:
        """The letter of the next message; None if it is not complete. Raises ProtocolError, FrameTooLarge."""
        return self._data[self._at : self._at + 1] if self._is_complete() else None

    def next_message(self) -> tuple[bytes, bytes] | None:
        """Remove the next message: (letter, body); None if it is not complete. Raises ProtocolError, FrameTooLarge."""
        data, at = self._data, self._at
        length = len(data)
        if at + 5 <= length:
            (size,) = _INT32.unpack_from(data, at + 1)
            end = at + 1 + size
            if 4 <= size <= self.limit_bytes and end <= length:
                self._at = end
                return data[at : at + 1], data[at + 5 : end]
        elif at == length and not self._later:
            self._data, self._at = b"", 0  # An idle connection keeps no chunk.
            return None
        # Either the message is malformed, or its rest is in the later chunks or has not arrived.
        return self.next_message() if self._is_complete() else None

    def next_body(self, letter: bytes) -> bytes | None:
        """Remove the next message if it is complete and has this letter; returns its body. Raises as `next_message`."""
        data, at = self._data, self._at
        if data[at : at + 1] != letter and len(data) > at:
            return None
        if len(data) - at >= 5:
            size = _INT32.unpack_from(data, at + 1)[0]
            end = at + 1 + size
            if 4 <= size <= self.limit_bytes and end <= len(data):
                self._at = end
                return data[at + 5 : end]
        if self.peek() != letter:
            return None
        message = self.next_message()
        return None if message is None else message[1]

    def _is_complete(self) -> bool:
        """Whether the next message is complete. It is in `_data` then."""
        have = len(self._data) - self._at
        if have < 5:
            if not self._later or have + self._later_bytes < 5:
                return False
            self._join()
            have = len(self._data)
        size = _INT32.unpack_from(self._data, self._at + 1)[0]
        if size < 4:
            raise ProtocolError(f"a message claims {size} bytes; the client breaks the protocol")
        if size > self.limit_bytes:
            raise FrameTooLarge(f"a message of {size} bytes exceeds the limit of {self.limit_bytes}; send less at once, or raise the limit")
        if have <= size and have + self._later_bytes > size:
            self._join()
            return True
        return bool(have > size)

    def _join(self) -> None:
        self._data = b"".join((self._data[self._at :], *self._later))
        self._at, self._later_bytes = 0, 0
        self._later.clear()


# Messages of the server.


def _message(letter: bytes, body: bytes) -> bytes:
    return letter + _INT32.pack(len(body) + 4) + body


def _cstring(text: str) -> bytes:
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


AUTHENTICATION_OK = _message(b"R", _INT32.pack(0))
PARSE_COMPLETE = _message(b"1", b"")
BIND_COMPLETE = _message(b"2", b"")
CLOSE_COMPLETE = _message(b"3", b"")
NO_DATA = _message(b"n", b"")
PORTAL_SUSPENDED = _message(b"s", b"")
EMPTY_QUERY = _message(b"I", b"")
READY_FOR_QUERY = {status: _message(b"Z", status.encode()) for status in "ITE"}
"""Maps the status of the transaction (I, T or E) to the message."""


def parameter_status(name: str, value: str) -> bytes:
    return _message(b"S", _cstring(name) + _cstring(value))


def backend_key_data(process_id: int, secret: int) -> bytes:
    return _message(b"K", struct.pack(">ii", process_id, secret))


def negotiate_protocol_version(unknown_options: Sequence[str]) -> bytes:
    """NegotiateProtocolVersion: the server supports protocol 3.0, as the number of a first packet, and none of these options."""
    body = struct.pack(">ii", PROTOCOL_MAJOR << 16, len(unknown_options)) + b"".join(_cstring(option) for option in unknown_options)
    return _message(b"v", body)


def copy_in_response(columns: int, *, is_binary: bool) -> bytes:
    """CopyInResponse: the client may send the data of COPY FROM."""
    return _message(b"G", _copy_formats(columns, is_binary))


def copy_out_response(columns: int, *, is_binary: bool) -> bytes:
    """CopyOutResponse: the data of COPY TO follow."""
    return _message(b"H", _copy_formats(columns, is_binary))


def _copy_formats(columns: int, is_binary: bool) -> bytes:
    return struct.pack(f">bh{columns}h", is_binary, columns, *[int(is_binary)] * columns)


def copy_data(data: bytes) -> bytes:
    return b"d" + _INT32.pack(len(data) + 4) + data


COPY_DONE = _message(b"c", b"")


@lru_cache(maxsize=_REPEATED_TAGS)
def command_complete(tag: str) -> bytes:
    return _message(b"C", _cstring(tag))


def parameter_description(oids: Sequence[int]) -> bytes:
    return _message(b"t", struct.pack(f">h{len(oids)}I", len(oids), *oids))


class ColumnDescription(NamedTuple):
    """One column in RowDescription."""

    name: str
    oid: int
    size_bytes: int
    """Size of the type; -1 for a variable length."""
    typmod: int
    format: int
    """0 text, 1 binary."""


def row_description(columns: Iterable[ColumnDescription]) -> bytes:
    parts: list[bytes] = []
    for name, oid, size, typmod, result_format in columns:
        parts.append(_cstring(name) + struct.pack(">ihIhih", 0, 0, oid, size, typmod, result_format))
    return _message(b"T", _INT16.pack(len(parts)) + b"".join(parts))


def data_row(values: Sequence[bytes | None]) -> bytes:
    parts: list[bytes] = [_INT16.pack(len(values))]
    for value in values:
        if value is None:
            parts.append(b"\xff\xff\xff\xff")
        else:
            parts.append(_INT32.pack(len(value)))
            parts.append(value)
    return _message(b"D", b"".join(parts))


CHANGED_RESULT = "cached plan must not change result type"
_ROUTINES = {CHANGED_RESULT: "RevalidateCachedQuery"}
"""Maps an error message to PostgreSQL's routine, by which asyncpg and pgjdbc recognize that a statement must be prepared again."""


def error_response(error: SqlError, *, severity: str = "ERROR") -> bytes:
    """ErrorResponse. `severity` is ERROR, or FATAL if the server closes the connection."""
    fields = [("S", severity), ("V", severity), ("C", error.sqlstate), ("M", error.message)]
    if error.detail is not None:
        fields.append(("D", error.detail))
    if error.hint is not None:
        fields.append(("H", error.hint))
    if error.position is not None:
        fields.append(("P", str(error.position)))
    if error.context is not None:
        fields.append(("W", error.context))
    if error.violation is not None:
        fields += _fields_of(error.violation)
    if error.message in _ROUTINES:
        fields.append(("R", _ROUTINES[error.message]))
    body = b"".join(letter.encode() + _cstring(text) for letter, text in fields)
    return _message(b"E", body + b"\0")


def _fields_of(violation: Violation) -> list[tuple[str, str]]:
    """Schema, table, column and constraint. The table is the one with the constraint, which is the referring one for a foreign key."""
    table = violation.other_table if violation.is_referred and violation.other_table is not None else violation.table
    fields = [("s", "public"), ("t", table)]
    if violation.constraint is not None:
        fields.append(("n", violation.constraint))
    else:
        fields.append(("c", violation.columns[0]))
    return fields


def notification_response(channel: str, payload: str) -> bytes:
    """NotificationResponse. The log does not say which session has sent it, so the process id is 0."""
    return _message(b"A", _INT32.pack(0) + _cstring(channel) + _cstring(payload))


def notice_response(sqlstate: str, message: str) -> bytes:
    fields = (("S", "WARNING"), ("V", "WARNING"), ("C", sqlstate), ("M", message))
    return _message(b"N", b"".join(letter.encode() + _cstring(text) for letter, text in fields) + b"\0")
