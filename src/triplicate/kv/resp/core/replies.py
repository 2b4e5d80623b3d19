"""Replies: values in Python, and their bytes in both versions of the protocol.

A reply is `None`, a boolean, an integer, a float, bytes (a bulk string), a list, a tuple, a set, a dictionary, or one of the classes
below. Version 2 has no maps, sets, booleans, doubles and pushes: maps become flat arrays, doubles bulk strings, booleans 0 and 1.
Source: Redis documentation, "RESP protocol description".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Union

RESP2, RESP3 = 2, 3


@dataclass(frozen=True, slots=True)
class Simple:
    """A short text without line breaks, such as ``OK``."""

    text: str


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """An error. Its text begins with a code in capitals, such as ``ERR``."""

    text: str


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A text for people; version 2 has a bulk string in its place."""

    text: str


@dataclass(frozen=True, slots=True)
class Push:
    """A message that answers no request; version 2 has an array in its place."""

    items: tuple[Reply, ...]


class NullArray:
    """No array, which is not the same as no string in version 2: the answer of an EXEC that did nothing."""


Reply = Union[
    None,
    bool,
    int,
    float,
    bytes,
    Simple,
    ErrorReply,
    Verbatim,
    Push,
    NullArray,
    "Sequence[Reply]",
    "Set[bytes]",
    "Mapping[bytes, Reply]",
]

OK = Simple("OK")
QUEUED = Simple("QUEUED")
NULL_ARRAY = NullArray()


class ReplyWriter:
    """Appends replies to a buffer.

    Args:
        version: 2 or 3; may change between two replies.
    """

    __slots__ = ("out", "version")

    def __init__(self, version: int = RESP2) -> None:
        self.version = version
        self.out = bytearray()

    def write(self, reply: Reply) -> None:
        """Append one reply."""
        if isinstance(reply, bytes):
            self.out += b"$%d\r\n%b\r\n" % (len(reply), reply)
        elif reply is OK:
            self.out += b"+OK\r\n"
        elif reply is None:
            self.out += b"_\r\n" if self.version == RESP3 else b"$-1\r\n"
        elif isinstance(reply, bool):
            self._write_boolean(reply)
        elif isinstance(reply, int):
            self.out += b":%d\r\n" % reply
        else:
            self._write_other(reply)

    def _write_boolean(self, value: bool) -> None:
        if self.version == RESP3:
            self.out += b"#t\r\n" if value else b"#f\r\n"
        else:
            self.out += b":1\r\n" if value else b":0\r\n"

    def _write_other(self, reply: Reply) -> None:
        is_new = self.version == RESP3
        if isinstance(reply, Simple):
            self.out += b"+%b\r\n" % _line(reply.text)
        elif isinstance(reply, ErrorReply):
            self.out += b"-%b\r\n" % _line(reply.text)
        elif isinstance(reply, float):
            text = double_text(reply)
            self.out += b",%b\r\n" % text if is_new else b"$%d\r\n%b\r\n" % (len(text), text)
        elif isinstance(reply, Verbatim):
            text = reply.text.encode()
            self.out += b"=%d\r\ntxt:%b\r\n" % (len(text) + 4, text) if is_new else b"$%d\r\n%b\r\n" % (len(text), text)
        elif isinstance(reply, NullArray):
            self.out += b"_\r\n" if is_new else b"*-1\r\n"
        elif isinstance(reply, Push):
            self._write_items(b">" if is_new else b"*", reply.items)
        elif isinstance(reply, Mapping):
            self.out += b"%b%d\r\n" % ((b"%", len(reply)) if is_new else (b"*", 2 * len(reply)))
            for key, value in reply.items():
                self.write(key)
                self.write(value)
        elif isinstance(reply, Set):
            self._write_items(b"~" if is_new else b"*", sorted(reply))
        elif isinstance(reply, Sequence):
            self._write_items(b"*", reply)
        else:
            raise TypeError(f"no reply: {reply!r}")

    def _write_items(self, mark: bytes, items: Sequence[Reply]) -> None:
        self.out += b"%b%d\r\n" % (mark, len(items))
        for item in items:
            self.write(item)


def double_text(value: float) -> bytes:
    """The shortest decimal number that is this one, without an exponent where that is short; ``inf``, ``-inf``, ``nan``."""
    if value != value or value in (float("inf"), float("-inf")):
        return str(value).encode()
    text = repr(value)
    return (text.removesuffix(".0")).encode()


def _line(text: str) -> bytes:
    """One line, also if the text repeats line breaks of a client."""
    return text.replace("\r", " ").replace("\n", " ").encode("utf-8", "backslashreplace")
