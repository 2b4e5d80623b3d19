"""Fuzz target over what a client of Redis sends: its requests, the commands that they name, and the patterns in them."""

from __future__ import annotations

from collections.abc import Iterator

from triplicate.errors import ProtocolError
from triplicate.kv import StoreLimits
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.kv.resp.core.command_table import find
from triplicate.kv.resp.core.glob import Glob
from triplicate.kv.resp.core.key_commands import ComputedCommand, KeyCommand, check_sizes
from triplicate.kv.resp.core.replies import RESP2, RESP3, ErrorReply, ReplyWriter
from triplicate.kv.resp.core.resp_requests import RequestBuffer, WordLimits

_LIMITS = WordLimits(arguments=20, request_bytes=300)
_STORE = StoreLimits(key_bytes=40, value_bytes=100, batch_bytes=250, batch_operations=10)
_CHUNK_BYTES = 5


def requests(data: bytes) -> None:
    """Requests are the same however they are cut, and each is a command or refused."""
    found, error = _read(data, len(data) or 1)
    assert (found, error) == _read(data, _CHUNK_BYTES)
    for words in found:
        _serve(words)


def _read(data: bytes, chunk_bytes: int) -> tuple[list[list[bytes]], str]:
    buffer, found = RequestBuffer(_LIMITS), list[list[bytes]]()
    try:
        for at in range(0, len(data), chunk_bytes):
            buffer.feed(data[at : at + chunk_bytes])
            while (words := buffer.next_request()) is not None:
                assert 0 < len(words) <= _LIMITS.arguments
                assert sum(map(len, words)) <= _LIMITS.request_bytes
                found.append(words)
    except ProtocolError as error:
        return found, str(error)
    return found, ""


def _serve(words: list[bytes]) -> None:
    try:
        command = find(words).read(words)
        if isinstance(command, KeyCommand):
            check_sizes(command.operations, _STORE)
        elif isinstance(command, ComputedCommand):
            operation, _ = command.compute(None, _STORE)
            if operation is not None:
                check_sizes((operation,), _STORE)
    except CommandError as error:
        for version in (RESP2, RESP3):
            writer = ReplyWriter(version)
            writer.write(ErrorReply(str(error)))
            assert writer.out.startswith(b"-")
            assert writer.out.find(b"\n") == writer.out.find(b"\r") + 1 == len(writer.out) - 1, "a reply is one line"
    for word in words:
        glob = Glob(word)
        assert not glob.matches(words[0]) or words[0].startswith(glob.prefix)


def request_seeds() -> Iterator[bytes]:
    """One request of each form."""
    for line in (
        b"GET a",
        b"SET a b EX 10 NX GET",
        b"MSET a b c d",
        b"EXPIRE a 10 XX LT",
        b"INCRBYFLOAT a 1.5e3",
        b"SETRANGE a 5 b",
        b"SCAN 0 MATCH [^a-z]*?\\* COUNT 10 TYPE string",
        b"HELLO 3 AUTH anna secret SETNAME me",
        b"CLIENT SETINFO LIB-NAME x",
        b"TRIPLICATE.LEVEL bounded 0.5 WAIT 10",
        b"TRIPLICATE.CAS a b c",
        b"TRIPLICATE.LASTREAD",
        b"PSUBSCRIBE __keyspace@0__:a*",
        b"HSET a b c",
    ):
        words = line.split(b" ")
        yield line + b"\r\n"
        yield b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    yield b"SET \"a\\x41\\n\" 'b c'\r\n\r\n*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n"
