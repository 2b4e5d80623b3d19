"""SQL text of SQLite's own ``.dump``, which SQLite runs into a file. All functions block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import apsw

from triplicate.errors import ArgumentError, EnvironmentFault
from triplicate.runtime import Host
from triplicate.sql.backup.core.sql_text import MARKED_BYTES, begins_sqlite_dump
from triplicate.sql.storage.sqlite_copy import check_room, delete_file

STATEMENT_BYTES_MAX = 256 * 1024 * 1024
_READ_BYTES = 1024 * 1024
_ROLLBACK = re.compile(r"\s*ROLLBACK\b", re.IGNORECASE)
_PRAGMAS = frozenset(("foreign_keys", "writable_schema", "user_version", "application_id", "encoding", "page_size", "auto_vacuum"))
_OPENING = re.compile(rb"['\"`\[]|/\*|--")
_CLOSING = {b"'": b"'", b'"': b'"', b"`": b"`", b"[": b"]", b"/*": b"*/"}
_STEPS = 256
"""Statements after which other threads get their turn."""


def is_sqlite_dump(host: Host, path: str) -> bool:
    """Whether a file begins as every ``.dump`` of the sqlite3 shell does."""
    with closing(host.disk.open(path, readonly=True)) as file:
        return begins_sqlite_dump(file.pread(MARKED_BYTES, 0))


def load_sqlite_dump(host: Host, text_path: str, path: str) -> None:
    """Run a dump into a new SQLite file, which has nothing of it if it fails.

    Raises:
        ArgumentError: a statement is refused, or the text ends too early; the message has the number of its line. EnvironmentFault: the
            disk has no room.
    """
    delete_file(host, path)
    host.disk.open(path, create=True).close()
    connection = apsw.Connection(path)
    try:
        connection.pragma("synchronous", "off")
        connection.authorizer = _authorize
        with closing(host.disk.open(text_path, readonly=True)) as file:
            check_room(host, path, file.size(), f"the database in {text_path}")
        for count, (line, statement) in enumerate(_statements(host, text_path)):
            _run(connection, text_path, line, statement)
            if count % _STEPS == 0:
                host.step_aside()
        if connection.in_transaction:
            raise ArgumentError(f"{text_path} ends before its COMMIT: it is not complete")
    finally:
        connection.close(True)


def _run(connection: apsw.Connection, text_path: str, line: int, statement: bytes) -> None:
    try:
        text = statement.decode()
        if _ROLLBACK.match(text):
            raise ArgumentError(f"{text_path}, line {line}: the dump met errors when it was written, and ends with ROLLBACK")
        for _ in connection.execute(text):  # Without it, a statement behind one that returns rows would not run.
            pass
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{text_path}, line {line + statement.count(10, 0, error.start)}: the text is no UTF-8") from None
    except apsw.FullError as error:
        raise EnvironmentFault(f"no room for the database in {text_path}: {error}") from error
    except apsw.Error as error:
        offset = max(0, getattr(error, "error_offset", -1))
        raise ArgumentError(f"{text_path}, line {line + statement.count(10, 0, offset)}: {error}") from None


def _statements(host: Host, path: str) -> Iterator[tuple[int, bytes]]:
    """Each statement with the number of its first line, from 1."""
    held, first = bytearray(), 1
    number, inside = 0, b""
    for number, line in enumerate(_lines(host, path), start=1):
        if not held:
            if not line.strip():
                continue
            first, inside = number, b""
        held += line
        inside = _inside_after(line, inside)
        if len(held) > STATEMENT_BYTES_MAX:
            raise ArgumentError(f"{path}, line {first}: the statement has more than {STATEMENT_BYTES_MAX} bytes")
        # Only the end of a line can end a statement, and only where SQLite finds it: a trigger holds semicolons of its own. SQLite reads
        # the whole statement for that, so it is not asked at the lines within a long text.
        if not inside and line.rstrip().endswith(b";") and apsw.complete(held.decode("utf-8", "replace")):
            yield first, bytes(held)
            held.clear()
    rest = bytes(held)
    if rest.strip() and not apsw.complete(rest.decode("utf-8", "replace") + "\n;"):
        raise ArgumentError(f"{path}, line {first}: the text ends, at line {number}, within this statement")
    if rest.strip():
        yield first, rest


def _inside_after(line: bytes, inside: bytes) -> bytes:
    """The mark that closes the text, name or comment within which a line ends; empty outside of them.

    Args:
        inside: the same for the line before.
    """
    at = 0
    while True:
        if inside:
            end = line.find(inside, at)
            if end < 0:
                return inside
            at = end + len(inside)
        opening = _OPENING.search(line, at)
        if opening is None or opening[0] == b"--":
            return b""
        at, inside = opening.end(), _CLOSING[opening[0]]


def _lines(host: Host, path: str) -> Iterator[bytes]:
    with closing(host.disk.open(path, readonly=True)) as file:
        offset, held, size = 0, list[bytes](), 0
        while data := file.pread(_READ_BYTES, offset):
            offset += len(data)
            first, *others = data.split(b"\n")
            held.append(first)
            size += len(first)
            for rest in others:
                yield b"".join(held) + b"\n"
                held, size = [rest], len(rest)
            if size > STATEMENT_BYTES_MAX:
                raise ArgumentError(f"{path} has a line of more than {STATEMENT_BYTES_MAX} bytes")
        if size:
            yield b"".join(held)


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    """A dump writes to its own file only."""
    if action in (apsw.SQLITE_ATTACH, apsw.SQLITE_DETACH):
        return apsw.SQLITE_DENY
    if action == apsw.SQLITE_PRAGMA and (first or "").lower() not in _PRAGMAS:
        return apsw.SQLITE_DENY
    return apsw.SQLITE_OK
