"""Fuzz targets over the login of a PostgreSQL client: the first packets, and both messages of SCRAM."""

from __future__ import annotations

from collections.abc import Iterator

from triplicate.errors import ProtocolError, SqlError
from triplicate.security import SCRAM, SCRAM_PLUS, ScramExchange, mock_verifier
from triplicate.sql.pg.protocol.login_messages import SASL_LETTER, sasl_initial_response
from triplicate.sql.pg.protocol.wire import SSL_REQUEST, MessageBuffer

_VERIFIER = mock_verifier(b"secret", "anna")
_CHUNK_BYTES = 7
_END_POINT = b"the hash of a certificate"


def first_packets(data: bytes) -> None:
    """Packets are the same however they are cut, as the server reads them before the login."""
    assert _packets(data, len(data) or 1) == _packets(data, _CHUNK_BYTES)


def proof(data: bytes) -> None:
    """The two messages, divided by a line break, before a server without and one with channel binding."""
    first, _, final = data.partition(b"\n")
    for mechanism in (SCRAM, SCRAM_PLUS):
        for end_point in (None, _END_POINT):
            try:
                exchange = ScramExchange(_VERIFIER, first, "server", mechanism, end_point)
                assert exchange.final(final) is None, "nobody has the password"
            except ProtocolError as error:
                _check_words(error, data)


def _packets(data: bytes, chunk_bytes: int) -> list[object]:
    """The messages that a server meets until the login: packets, SASL messages, or the error."""
    buffer = MessageBuffer(1088)
    found: list[object] = []
    try:
        for at in range(0, len(data), chunk_bytes):
            buffer.feed(data[at : at + chunk_bytes])
            while True:
                if not found or isinstance(found[-1], int):
                    startup = buffer.next_startup()
                    if startup is None:
                        break
                    found.append(startup.code if startup.code == SSL_REQUEST else startup)
                    continue
                message = buffer.next_message()
                if message is None:
                    break
                letter, body = message
                found.append(sasl_initial_response(body) if letter == SASL_LETTER else (letter, body))
    except (ProtocolError, SqlError) as error:
        found.append(str(error))
    return found


def _check_words(error: ProtocolError, data: bytes) -> None:
    """An error repeats nothing of a secret."""
    assert str(error).isprintable(), data


def first_packet_seeds() -> Iterator[bytes]:
    startup = b"\0\0\0\x23\0\3\0\0user\0anna\0database\0shop\0\0"
    startup = len(startup).to_bytes(4, "big") + startup[4:]
    ssl_request = b"\0\0\0\x08\x04\xd2\x16\x2f"
    initial = SCRAM.encode() + b"\0\0\0\0\x17n,,n=,r=nonce-of-client"
    message = SASL_LETTER + (len(initial) + 4).to_bytes(4, "big") + initial
    yield startup
    yield ssl_request + startup + message
    yield b"\0\0\0\x08\x04\xd2\x16\x30" + ssl_request
    yield b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\1\0\0\0\2"


def proof_seeds() -> Iterator[bytes]:
    nothing = 43 * b"A" + b"="
    yield b"n,,n=,r=client\nc=biws,r=clientserver,p=" + nothing
    yield b"y,,n=anna,r=client,x=y\nc=eSws,r=clientserver,x=y,p=" + nothing
    binding = b"cD10bHMtc2VydmVyLWVuZC1wb2ludCwsdGhlIGhhc2ggb2YgYSBjZXJ0aWZpY2F0ZQ=="
    yield b"p=tls-server-end-point,,n=,r=client\nc=" + binding + b",r=clientserver,p=" + nothing
    yield b"n,a=root,m=x,n=,r=client\n"
