"""Values read from a fuzzer's bytes, so that mutations of the bytes become mutations of the values."""

from __future__ import annotations

from struct import Struct

_INT64 = Struct(">q").unpack_from

# Values at which formats change their width or meaning: a varint's steps, signs, and the greatest numbers.
EDGES = (0, 1, 2, 127, 128, 16383, 16384, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**31 - 1, 2**31, 2**35, 2**56, 2**63 - 1, -1, -2, -(2**63))


class Fields:
    """Reads values from the front of some bytes; past their end every value is 0 or empty."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def __bool__(self) -> bool:
        """Whether any byte is left."""
        return self._position < len(self._data)

    def byte(self) -> int:
        position = self._position
        self._position = position + 1
        return self._data[position] if position < len(self._data) else 0

    def flag(self) -> bool:
        return self.byte() & 1 == 1

    def take(self, size: int) -> bytes:
        """At most `size` bytes."""
        start = self._position
        self._position = start + size
        return self._data[start : start + size]

    def rest(self) -> bytes:
        return self.take(len(self._data))

    def blob(self, most: int = 255) -> bytes:
        """Bytes with a length given by one byte."""
        return self.take(min(self.byte(), most))

    def integer(self) -> int:
        """A signed 64-bit number: small, at an edge, or any."""
        kind = self.byte()
        if kind < 128:
            return kind
        if kind < 255:
            return EDGES[kind % len(EDGES)]
        return int(_INT64(self.take(8).ljust(8, b"\0"))[0])

    def unsigned(self) -> int:
        """An unsigned 64-bit number, likewise."""
        return self.integer() & 2**64 - 1
