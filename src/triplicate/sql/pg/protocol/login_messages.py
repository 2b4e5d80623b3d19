"""Codec of the messages of a login: answers to requests for encryption, and the exchange of SASL. Pure.

Source: PostgreSQL 15 documentation, chapter "Frontend/Backend Protocol", sections "SASL Authentication" and "Message Formats".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from triplicate.errors import ProtocolError

ENCRYPTION_ACCEPTED = b"S"
ENCRYPTION_REFUSED = b"N"
"""Answers to a request for encryption. They are single bytes and no messages."""
SASL_MESSAGE_BYTES_MAX = 1024
"""PostgreSQL's own limit for a message of the exchange."""
SASL_LETTER = b"p"
"""Of both messages of the client."""

_NUMBER = struct.Struct(">i")


def _authentication(kind: int, data: bytes) -> bytes:
    return b"R" + struct.pack(">ii", len(data) + 8, kind) + data


def authentication_sasl(mechanisms: Sequence[str]) -> bytes:
    """AuthenticationSASL: the mechanisms that the server offers, the preferred one first."""
    return _authentication(10, b"".join(name.encode() + b"\0" for name in mechanisms) + b"\0")


def authentication_sasl_continue(data: str) -> bytes:
    return _authentication(11, data.encode())


def authentication_sasl_final(data: str) -> bytes:
    return _authentication(12, data.encode())


def sasl_initial_response(body: bytes) -> tuple[str, bytes]:
    """(the mechanism, the client's first message) of a SASLInitialResponse. Raises ProtocolError."""
    name, zero, rest = body.partition(b"\0")
    if not zero or len(rest) < 4 or _NUMBER.unpack_from(rest)[0] != len(rest) - 4:
        raise ProtocolError("malformed SASLInitialResponse: a mechanism and a message of the size that it has are expected")
    return name.decode("utf-8", "replace"), rest[4:]
