"""NegotiateProtocolVersion names the minor version alone, which clients do not take for one of version 3."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from triplicate.sql.pg.protocol import wire

TESTS = ["tests/unit/sql/pg/protocol/test_client_startup.py::test_a_client_of_a_later_minor_version_of_the_protocol_goes_on_with_ours"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def minor_only(unknown_options: Sequence[str]) -> bytes:
        return wire._message(b"v", struct.pack(">ii", 0, len(unknown_options)) + b"".join(map(wire._cstring, unknown_options)))

    patch(wire, "negotiate_protocol_version", minor_only)
