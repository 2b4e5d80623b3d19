"""Patterns of keys, as Redis has them: ``*``, ``?``, ``[a-z]``, ``[^a]``, and a backslash before a character that stands for itself.

A match takes at most the product of both lengths, for any pattern.
"""

from __future__ import annotations

import re

from triplicate.kv.resp.core.command_errors import CommandError

PATTERN_BYTES_MAX = 1024

_CLASS = re.compile(rb"\[(\^?)((?:\\.|[^\]\\])*)\]?", re.DOTALL)
_RANGE = re.compile(rb"(\\.|.)(?:-(\\.|.))?", re.DOTALL)


class Glob:
    """A compiled pattern.

    Raises (on creation):
        CommandError: it is longer than `PATTERN_BYTES_MAX`.
    """

    __slots__ = ("_inner", "_last", "_start", "prefix")

    def __init__(self, pattern: bytes) -> None:
        if len(pattern) > PATTERN_BYTES_MAX:
            raise CommandError(f"ERR a pattern has at most {PATTERN_BYTES_MAX} bytes")
        parts, self.prefix = _parts(pattern)
        # A part between two stars has a fixed length, so its first occurrence is as good as any.
        self._start = re.compile(parts[0], re.DOTALL)
        self._inner = [re.compile(part, re.DOTALL) for part in parts[1:-1] if part]
        self._last = re.compile(b"(?:%b)\\Z" % parts[-1], re.DOTALL) if len(parts) > 1 else None

    def matches(self, key: bytes) -> bool:
        """Whether the whole key fits the pattern."""
        found = self._start.match(key)
        if found is None:
            return False
        at = found.end()
        if self._last is None:
            return at == len(key)
        for part in self._inner:
            found = part.search(key, at)
            if found is None:
                return False
            at = found.end()
        return self._last.search(key, at) is not None


def _parts(pattern: bytes) -> tuple[list[bytes], bytes]:
    """Regular expressions of the parts between the stars, and the bytes with which every match begins."""
    parts, prefix, is_literal, at = [b""], b"", True, 0
    while at < len(pattern):
        mark = pattern[at : at + 1]
        if mark == b"*":
            is_literal = False
            if parts[-1] or len(parts) == 1:
                parts.append(b"")
            at += 1
        elif mark == b"?":
            is_literal = False
            parts[-1] += b"."
            at += 1
        elif mark == b"[":
            is_literal = False
            found = _CLASS.match(pattern, at)
            assert found is not None, "an opening bracket begins a class"
            parts[-1] += _class(found[2], is_negated=bool(found[1]))
            at = found.end()
        else:
            if mark == b"\\" and at + 1 < len(pattern):
                at += 1
                mark = pattern[at : at + 1]
            parts[-1] += re.escape(mark)
            prefix += mark if is_literal else b""
            at += 1
    return parts, prefix


def _class(text: bytes, *, is_negated: bool) -> bytes:
    members = b""
    for found in _RANGE.finditer(text):
        low = found[1][-1:]
        high = found[2][-1:] if found[2] else low
        low, high = min(low, high), max(low, high)
        members += b"\\x%02x-\\x%02x" % (low[0], high[0])
    if not members:
        return b"." if is_negated else b"(?!)"
    return b"[%b%b]" % (b"^" if is_negated else b"", members)
