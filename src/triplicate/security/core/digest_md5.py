"""SASL's mechanism DIGEST-MD5, as Java's clients and bookies speak it: the tokens of both sides, and the value that proves the password.

The server sends a challenge with a nonce, the client answers with a response that proves the password, and the server proves in turn that
it knows the password's hash. MD5 is broken as a hash, and who records one exchange can guess passwords against it at leisure. So it is for
Apache's clients only, and inside TLS where there is one.

Both sides use `hash_of`, `proof`, `parse_directives` and `quoted`. Source: RFC 2831; JDK `com.sun.security.sasl.digest`; BookKeeper
`SaslConstants`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from triplicate.errors import ProtocolError

MECHANISM = "DIGEST-MD5"
REALM = "bookkeeper"
"""BookKeeper's realm. Its protocol and its host, which make up the digest's URI, have the same name."""
DIGEST_URI = b"bookkeeper/bookkeeper"
NONCE_BYTES = 30
"""Random bytes of a nonce; it is their 40 characters in base64, as in Java."""
NONCE_COUNT = b"00000001"
"""A nonce serves for one login, so a recorded response is of no use on another connection."""
CHALLENGE_BYTES_MAX = 2048
RESPONSE_BYTES_MAX = 4096
"""Limits of the JDK for the tokens of the server and of the client."""

_WHITE = b" \t\r\n"
_ESCAPED = frozenset(b'"\\\x7f') | (frozenset(range(32)) - frozenset(b"\r\t\n"))


def hash_of(user: str, password: str, realm: str = REALM) -> bytes:
    """The hash of a password, 16 bytes. For this realm it is as good as the password: with it one can log in.

    Each part is in ISO 8859-1 if it can be, else in UTF-8.
    """
    return _md5(b":".join(_in_latin_1_if_possible(part) for part in (user, realm, password)))


def proof(
    password_hash: bytes,
    *,
    nonce: bytes,
    client_nonce: bytes,
    authorization_id: bytes | None,
    by_server: bool = False,
    uri: bytes = DIGEST_URI,
) -> bytes:
    """The response value, 32 lower-case hexadecimal digits: the client's ``response``, or the server's ``rspauth``.

    Args:
        password_hash: of `hash_of`.
        nonce: the server's.
        authorization_id: None if the client's response has none. Java's client sends its user's name.
    """
    session = b":".join((password_hash, nonce, client_nonce))
    if authorization_id is not None:
        session += b":" + authorization_id
    method = b"" if by_server else b"AUTHENTICATE"
    parts = (_hexadecimal(session), nonce, NONCE_COUNT, client_nonce, b"auth", _hexadecimal(method + b":" + uri))
    return _hexadecimal(b":".join(parts))


def format_directives(directives: Sequence[tuple[str, bytes]]) -> bytes:
    """A token of directives, in this order. A value that needs quotes comes from `quoted`."""
    return b",".join(name.encode() + b"=" + value for name, value in directives)


def quoted(value: bytes) -> bytes:
    """The value in quotation marks."""
    return b'"' + b"".join(b"\\" + bytes([each]) if each in _ESCAPED else bytes([each]) for each in value) + b'"'


def parse_directives(token: bytes) -> dict[str, bytes]:
    """The values of a token's directives by their names in lower case, without quotation marks. Unknown ones are the caller's to ignore.

    Raises:
        ProtocolError: it is no such token, or it has a directive twice. The error does not repeat its values.
    """
    found: dict[str, bytes] = {}
    position = _skip_white(token, 0)
    while position < len(token):
        if token[position : position + 1] == b",":
            position = _skip_white(token, position + 1)
            continue
        name, position = _name(token, position)
        if name in found:
            raise ProtocolError(f"a token of DIGEST-MD5 has the directive {name} twice")
        found[name], position = _value(token, position)
    return found


def _name(token: bytes, position: int) -> tuple[str, int]:
    """A directive's name, and the position of its value."""
    end = token.find(b"=", position)
    name = token[position:end].rstrip(_WHITE) if end >= 0 else b""
    if not name or not name.replace(b"-", b"").isalnum():
        raise ProtocolError("a token of DIGEST-MD5 has a part that is no NAME=VALUE")
    position = _skip_white(token, end + 1)
    if position == len(token):
        raise ProtocolError("a token of DIGEST-MD5 ends behind the name of a directive")
    return name.decode().lower(), position


def _value(token: bytes, position: int) -> tuple[bytes, int]:
    """A directive's value, and the position behind it."""
    if token[position : position + 1] != b'"':
        end = position
        while end < len(token) and token[end] not in b"," + _WHITE:
            end += 1
        return token[position:end], _skip_white(token, end)
    value = bytearray()
    position += 1
    while position < len(token):
        each = token[position]
        if each == ord('"'):
            position += 1
            if position < len(token) and token[position] not in b"," + _WHITE:
                raise ProtocolError("a token of DIGEST-MD5 has no comma behind a quoted value")
            return bytes(value), _skip_white(token, position)
        if each == ord("\\"):
            position += 1
            if position == len(token):
                break
        value.append(token[position])
        position += 1
    raise ProtocolError("a token of DIGEST-MD5 ends within a quoted value")


def _skip_white(token: bytes, position: int) -> int:
    while position < len(token) and token[position] in _WHITE:
        position += 1
    return position


def _in_latin_1_if_possible(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _md5(content: bytes) -> bytes:
    return hashlib.md5(content, usedforsecurity=False).digest()


def _hexadecimal(content: bytes) -> bytes:
    return _md5(content).hex().encode()
