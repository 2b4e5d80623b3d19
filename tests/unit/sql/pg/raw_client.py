"""A client that sends messages in any order, and shows the answers as short text."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence


def _message(letter: str, body: bytes) -> bytes:
    return letter.encode() + struct.pack(">i", len(body) + 4) + body


def _text(text: str) -> bytes:
    return text.encode() + b"\0"


def query(sql: str) -> bytes:
    return _message("Q", _text(sql))


def parse(sql: str, name: str = "", oids: Sequence[int] = ()) -> bytes:
    return _message("P", _text(name) + _text(sql) + struct.pack(f">h{len(oids)}I", len(oids), *oids))


def bind(
    *parameters: bytes | None, statement: str = "", portal: str = "", formats: Sequence[int] = (), results: Sequence[int] = ()
) -> bytes:
    body = _text(portal) + _text(statement) + struct.pack(f">h{len(formats)}h", len(formats), *formats)
    body += struct.pack(">h", len(parameters))
    for one in parameters:
        body += struct.pack(">i", -1) if one is None else struct.pack(">i", len(one)) + one
    return _message("B", body + struct.pack(f">h{len(results)}h", len(results), *results))


def describe(name: str = "", kind: str = "S") -> bytes:
    return _message("D", kind.encode() + _text(name))


def execute(portal: str = "", rows: int = 0) -> bytes:
    return _message("E", _text(portal) + struct.pack(">i", rows))


def copy_data(data: bytes) -> bytes:
    return _message("d", data)


def copy_fail(reason: str) -> bytes:
    return _message("f", _text(reason))


SYNC = _message("S", b"")
FLUSH = _message("H", b"")
COPY_DONE = _message("c", b"")


def _shown(letter: str, body: bytes) -> str:
    match letter:
        case "E" | "N":
            fields = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
            return f"{letter} {fields[b'S']} {fields[b'C']}"
        case "C":
            return "C " + body[:-1].decode()
        case "D":
            values, at = [], 2
            for _ in range(struct.unpack_from(">h", body)[0]):
                size = struct.unpack_from(">i", body, at)[0]
                values.append("NULL" if size < 0 else body[at + 4 : at + 4 + size].decode())
                at += 4 + max(size, 0)
            return "D " + ",".join(values)
        case "T":
            columns, at = [], 2
            for _ in range(struct.unpack_from(">h", body)[0]):
                end = body.index(b"\0", at)
                columns.append(f"{body[at:end].decode()}:{struct.unpack_from('>I', body, end + 7)[0]}")
                at = end + 19
            return "T " + ",".join(columns)
        case "Z":
            return "Z " + body.decode()
        case "d":
            return "d " + body.decode()
    return letter


class RawClient:
    """A connection past its start-up."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, host: str, port: int, database: str = "shop") -> RawClient:
        reader, writer = await asyncio.open_connection(host, port)
        client = cls(reader, writer)
        body = struct.pack(">i", 196608) + _text("user") + _text("me") + _text("database") + _text(database) + b"\0"
        writer.write(struct.pack(">i", len(body) + 4) + body)
        await client._until_ready()
        return client

    async def send(self, *messages: bytes) -> list[str]:
        """The answers up to each ReadyForQuery that the messages ask for."""
        self._writer.write(b"".join(messages))
        answers: list[str] = []
        for _ in range(sum(one[:1] in (b"S", b"Q") for one in messages)):
            answers += await self._until_ready()
        return answers

    def send_nowait(self, *messages: bytes) -> None:
        self._writer.write(b"".join(messages))

    async def until_closed(self) -> list[str]:
        """The answers up to the end of the connection."""
        answers: list[str] = []
        while letter := await self._reader.read(1):
            answers.append(await self._answer(letter))
        return answers

    async def _until_ready(self) -> list[str]:
        answers: list[str] = []
        while True:
            answers.append(await self._answer(await self._reader.readexactly(1)))
            if answers[-1][0] == "Z":
                return [answer for answer in answers if answer[0] not in "SK"]

    async def _answer(self, letter: bytes) -> str:
        size = struct.unpack(">i", await self._reader.readexactly(4))[0]
        return _shown(letter.decode(), await self._reader.readexactly(size - 4))

    def close(self) -> None:
        self._writer.close()
