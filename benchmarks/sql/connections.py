"""A program: many connections to one server, over sockets with as little memory and processor time of their own as possible.

Reads one JSON object per line and answers with one: ``{"do": "open", "port": …, "database": …, "count": …}`` opens connections,
``{"do": "read"}`` runs a point read on each of them, ``{"do": "work"}`` some statements and a prepared one, and ``{"do": "close"}`` closes
them.
Source: PostgreSQL 15 documentation, "Message Formats".
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.sql.pgbench import ACCOUNTS, ROWS

PROTOCOL = 196608
OPENED_AT_ONCE = 50
READ_AT_ONCE = 200
"""With all at once, the node's event loop serves nobody else for seconds on a busy machine, and followers take its silence for its end."""
WORKING_AT_ONCE = 50
ANSWER_LIMIT_S = 60.0
READY = ord("Z")
FAILURE = ord("E")


class ServerRefused(Exception):
    """The server answered with an error."""


def startup(database: str) -> bytes:
    body = struct.pack("!i", PROTOCOL) + b"user\0bench\0database\0" + database.encode() + b"\0\0"
    return struct.pack("!i", len(body) + 4) + body


def query(text: str) -> bytes:
    return _message(b"Q", text.encode() + b"\0")


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def prepare(name: str, text: str) -> bytes:
    """Parse and Sync."""
    return _message(b"P", f"{name}\0{text}\0".encode() + struct.pack("!h", 0)) + _message(b"S", b"")


def execute(name: str, parameter: str) -> bytes:
    """Bind with one parameter in text, Execute and Sync."""
    value = parameter.encode()
    body = f"\0{name}\0".encode() + struct.pack("!hhi", 0, 1, len(value)) + value + struct.pack("!h", 0)
    return _message(b"B", body) + _message(b"E", b"\0" + struct.pack("!i", 0)) + _message(b"S", b"")


def work(number: int) -> list[bytes]:
    """The messages of the connection of that number, one after another: reads, a transaction, a statement prepared and executed twice."""
    account = number % ACCOUNTS + 1
    return [
        query(f"SELECT name FROM filled WHERE id = {number % ROWS + 1}"),
        query("SELECT aid, bid, abalance, filler FROM accounts WHERE aid <= 200"),
        query("BEGIN"),
        query(f"UPDATE accounts SET abalance = abalance + 1 WHERE aid = {account}"),
        query(f"SELECT abalance FROM accounts WHERE aid = {account}"),
        query("COMMIT"),
        prepare("kept", "SELECT abalance, filler FROM accounts WHERE aid = $1"),
        execute("kept", str(account)),
        execute("kept", str(account)),
    ]


class Line:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, message: bytes) -> None:
        """Send a message and read up to ReadyForQuery.

        Raises:
            ServerRefused: an error came. OSError, EOFError: the connection ended.
        """
        self._writer.write(message)
        failure = b""
        while True:
            try:
                head = await self._reader.readexactly(5)
            except EOFError:  # After a fatal error nothing follows.
                if failure:
                    break
                raise
            body = await self._reader.readexactly(int.from_bytes(head[1:], "big") - 4)
            if head[0] == FAILURE:
                failure = body
            if head[0] == READY:
                break
        if failure:
            raise ServerRefused(failure.replace(b"\0", b" ").decode(errors="replace"))

    def close(self) -> None:
        self._writer.close()


class Lines:
    """All connections."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._opening = asyncio.Semaphore(OPENED_AT_ONCE)

    async def open(self, port: int, database: str, count: int) -> dict[str, Any]:
        began = time.perf_counter()
        outcomes = await asyncio.gather(*(self._open_one(port, database) for _ in range(count)))
        failures = [text for text in outcomes if text]
        return {"opened": count - len(failures), "seconds": time.perf_counter() - began, "failure": failures[0] if failures else ""}

    async def _open_one(self, port: int, database: str) -> str:
        async with self._opening:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
                line = Line(reader, writer)
                async with asyncio.timeout(ANSWER_LIMIT_S):
                    await line.ask(startup(database))
            except (OSError, EOFError, ServerRefused) as error:
                return repr(error)
            self._lines.append(line)
            return ""

    async def read(self) -> dict[str, Any]:
        return await self._ask_all(lambda number: work(number)[:1], READ_AT_ONCE)

    async def work(self) -> dict[str, Any]:
        return await self._ask_all(work, WORKING_AT_ONCE)

    async def _ask_all(self, messages: Callable[[int], list[bytes]], at_once: int) -> dict[str, Any]:
        """Ask on each connection what belongs to its number."""
        began, places = time.perf_counter(), asyncio.Semaphore(at_once)
        outcomes = await asyncio.gather(*(self._ask_one(line, messages(number), places) for number, line in enumerate(self._lines)))
        failures = [text for text in outcomes if text]
        seconds = time.perf_counter() - began
        return {"served": len(outcomes) - len(failures), "seconds": seconds, "failure": failures[0] if failures else ""}

    async def _ask_one(self, line: Line, messages: list[bytes], places: asyncio.Semaphore) -> str:
        try:
            async with places, asyncio.timeout(ANSWER_LIMIT_S):
                for message in messages:
                    await line.ask(message)
        except (OSError, EOFError, ServerRefused) as error:
            return repr(error)
        return ""

    async def close(self) -> dict[str, Any]:
        for line in self._lines:
            line.close()
        self._lines.clear()
        return {}


async def main() -> None:
    lines = Lines()
    while command := await asyncio.to_thread(sys.stdin.readline):
        arguments: dict[str, Any] = json.loads(command)
        serve: Callable[..., Awaitable[dict[str, Any]]] = getattr(lines, arguments.pop("do"))
        try:
            answer: dict[str, Any] = {"ok": await serve(**arguments)}
        except OSError as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
