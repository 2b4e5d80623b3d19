"""The header of a stored entry, read without the library's codec and without its digest."""

from __future__ import annotations

import struct
from typing import NamedTuple

_HEADER = struct.Struct(">qqqq")


class RawHeader(NamedTuple):
    """The fields in the order in which they are stored. Source: BookKeeper 4.18, DigestManager."""

    ledger_id: int
    entry_id: int
    last_add_confirmed: int
    length: int


def entry_header(body: bytes | memoryview) -> RawHeader:
    """The header of a complete entry, unverified."""
    return RawHeader(*_HEADER.unpack_from(body))
