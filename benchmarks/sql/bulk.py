"""Many rows in one transaction: COPY, INSERT of many rows, and executemany over pipelined messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import asyncpg
import psycopg

from benchmarks.ledger.processes import CaseFailed
from benchmarks.sql.cases import Figures, SqlTurn
from benchmarks.sql.pgbench import LOADED
from benchmarks.sql.servers import DATABASE, USER

ROWS = 20_000
"""Rows of one transaction."""
ROWS_OF_STATEMENT = 1_000
"""Rows of one INSERT of many."""
LIMIT_S = 60.0
NAME = "a name of some length"
EMPTIED = ("DROP TABLE loaded", LOADED)
"""A DELETE of the rows of a long case has more changes than a transaction may have."""

Made = TypeVar("Made")


def batches(seconds: float) -> Iterator[int]:
    """First keys of transactions until the time is over; at least one transaction."""
    ends = time.perf_counter() + seconds
    first = 1
    while True:
        yield first
        first += ROWS
        if time.perf_counter() > ends:
            return


def copy(turn: SqlTurn) -> Figures:
    """COPY FROM STDIN in the text format, with psycopg."""
    try:
        return _loaded(turn, _lines, _copy)
    except psycopg.errors.FeatureNotSupported:
        raise CaseFailed("this release refuses COPY") from None


def insert_rows(turn: SqlTurn) -> Figures:
    """INSERT with 1,000 rows of parameters each, prepared, with psycopg."""
    return _loaded(turn, _values, _insert)


def insert_text(turn: SqlTurn) -> Figures:
    """INSERT with 1,000 rows of constants each, as `pg_dump --inserts` and many libraries write them, with psycopg."""
    return _loaded(turn, _texts, _insert_texts)


def _loaded(turn: SqlTurn, made: Callable[[range], Made], load: Callable[[psycopg.Connection[Any], Made], None]) -> Figures:
    """Load one transaction after another into an empty table. The time of making the rows does not count."""
    with turn.server.connect() as connection:
        for statement in EMPTIED:
            connection.execute(statement)
        loaded, spent = 0, 0.0
        try:
            for first in batches(turn.seconds):
                rows = made(range(first, first + ROWS))
                began = time.perf_counter()
                load(connection, rows)
                spent += time.perf_counter() - began
                loaded += ROWS
        except psycopg.errors.FeatureNotSupported:
            raise
        except psycopg.Error as error:
            raise CaseFailed(f"many rows: {error}") from error
    return {"per_s": loaded / spent, "count": loaded}


def _lines(keys: range) -> bytes:
    return "".join(f"{key}\t{NAME}\n" for key in keys).encode()


def _copy(connection: psycopg.Connection[Any], lines: bytes) -> None:
    with connection.cursor() as cursor, cursor.copy("COPY loaded (id, name) FROM STDIN") as stream:
        stream.write(lines)


def _values(keys: range) -> list[list[int | str]]:
    """The parameters of each statement."""
    starts = range(0, len(keys), ROWS_OF_STATEMENT)
    return [[value for key in keys[start : start + ROWS_OF_STATEMENT] for value in (key, NAME)] for start in starts]


def _insert(connection: psycopg.Connection[Any], statements: list[list[int | str]]) -> None:
    with connection.transaction():
        for values in statements:
            text = f"INSERT INTO loaded VALUES {', '.join(['(%s, %s)'] * (len(values) // 2))}"
            connection.execute(text.encode(), values, prepare=True)


def _texts(keys: range) -> list[bytes]:
    """The text of each statement."""
    starts = range(0, len(keys), ROWS_OF_STATEMENT)
    rows = [", ".join(f"({key}, '{NAME}')" for key in keys[start : start + ROWS_OF_STATEMENT]) for start in starts]
    return [f"INSERT INTO loaded VALUES {one}".encode() for one in rows]


def _insert_texts(connection: psycopg.Connection[Any], statements: list[bytes]) -> None:
    with connection.transaction():
        for text in statements:
            connection.execute(text)


def executemany(turn: SqlTurn) -> Figures:
    """asyncpg's executemany, which sends Bind and Execute for each row in a pipeline, inside of a transaction."""
    return asyncio.run(_executemany(turn.server.leader_port, turn.seconds))


async def _executemany(port: int, seconds: float) -> Figures:
    try:
        async with asyncio.timeout(seconds + LIMIT_S):
            connection = await asyncpg.connect(host="127.0.0.1", port=port, user=USER, database=DATABASE, ssl=False)
            try:
                for statement in EMPTIED:
                    await connection.execute(statement)
                loaded, spent = 0, 0.0
                for first in batches(seconds):
                    rows = [(key, NAME) for key in range(first, first + ROWS)]
                    began = time.perf_counter()
                    async with connection.transaction():
                        await connection.executemany("INSERT INTO loaded VALUES ($1, $2)", rows)
                    spent += time.perf_counter() - began
                    loaded += ROWS
            finally:
                connection.terminate()
    except TimeoutError:
        raise CaseFailed(f"executemany did not end within {seconds + LIMIT_S:.0f} s") from None
    except asyncpg.PostgresError as error:
        raise CaseFailed(f"executemany: {error}") from error
    return {"per_s": loaded / spent, "count": loaded}
