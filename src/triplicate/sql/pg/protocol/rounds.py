"""Rounds: a Bind, perhaps a Describe, an Execute of all rows and a Sync that arrive together. Pure.

Client libraries send these messages at once for each run of a prepared statement. A round is found by its bytes: only Bind is decoded, and
most Binds have the shape of the one before them. A round is found or not; each fault is left to the message that has it.
"""

from __future__ import annotations

import struct

from triplicate.errors import ProtocolError, SqlError
from triplicate.sql.pg.protocol.wire import BindShape, MessageBuffer, bind_shape

SHAPE_BYTES_MAX = 4096
"""The largest shape that a connection keeps."""
_DESCRIBE = b"D\0\0\0\6P\0"
_EXECUTE_AND_SYNC = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\4"
_DESCRIBE_EXECUTE_AND_SYNC = _DESCRIBE + _EXECUTE_AND_SYNC
_EMPTY_BIND = bytes(8)
"""A Bind without names, formats and values."""
_SIZE = struct.Struct(">i")


class Round:
    """One run of a prepared statement by the unnamed portal.

    Args:
        shape: of its Bind. values: in its Bind.
        is_described: whether the portal is described before it is executed.
        size_bytes: of all its messages.
    """

    __slots__ = ("is_described", "shape", "size_bytes", "values")

    def __init__(self, shape: BindShape, values: tuple[bytes | None, ...], size_bytes: int, *, is_described: bool) -> None:
        self.shape = shape
        self.values = values
        self.size_bytes = size_bytes
        self.is_described = is_described


class RoundBuffer(MessageBuffer):
    """A buffer of messages that finds rounds among them.

    Args:
        limit_bytes: the largest message accepted.
    """

    __slots__ = ("_shape",)

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        self._shape = bind_shape(_EMPTY_BIND)
        """Of the last Bind of a round."""

    def find_round(self) -> Round | None:
        """The round with which the next message begins, all of which is in one chunk; None if there is none. It stays in the buffer."""
        data, at = self._data, self._at
        if data[at : at + 1] != b"B" or len(data) < at + 5:
            return None
        size: int = _SIZE.unpack_from(data, at + 1)[0]
        end = at + 1 + size
        if not 4 <= size <= self.limit_bytes:
            return None
        if data.startswith(_EXECUTE_AND_SYNC, end):
            is_described, last = False, end + len(_EXECUTE_AND_SYNC)
        elif data.startswith(_DESCRIBE_EXECUTE_AND_SYNC, end):
            is_described, last = True, end + len(_DESCRIBE_EXECUTE_AND_SYNC)
        else:
            return None
        body = data[at + 5 : end]
        shape = self._shape
        values = shape.values(body)
        if values is None:
            try:
                shape = bind_shape(body)
            except (ProtocolError, SqlError):
                return None  # Decoding of the message by itself raises the error.
            values = shape.values(body)
            if shape.portal or values is None:
                return None
            if len(shape.head) + len(shape.tail) <= SHAPE_BYTES_MAX:
                self._shape = shape
        return Round(shape, values, last - at, is_described=is_described)

    def skip(self, found: Round) -> None:
        """Remove the messages of a round that `find_round` has found, and that are the next ones."""
        self._at += found.size_bytes
        if self._at == len(self._data):
            self._data, self._at = b"", 0  # An idle connection keeps no chunk.
