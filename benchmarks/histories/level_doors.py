"""The connections of the clients that read at levels: to a database by PostgreSQL's protocol, and to a store by Redis'."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from benchmarks.histories.cluster import Address
from benchmarks.histories.levels import WAIT_LIMIT_S, Answer, Connect, Door, Lost, Refused
from benchmarks.histories.resp_connection import Command, Word, code_of

MARKS = "create table marks(number integer primary key)"
READ = "select triplicate_position(), 0, {} union all select triplicate_position(), number, null from marks"
"""The first row has the age."""
KEYS = ("mark", "mark again")
"""A batch sets both to the number of the last mark."""


class SqlDoor:
    """A connection to a node's database."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def write(self, mark: int) -> int:
        with _sql_errors():
            await self._connection.execute(f"insert into marks values({mark})")
            return int(await self._connection.fetchval("select triplicate_position()"))

    async def read(self, level: str, bound_s: float, position: int, *, asks_age: bool) -> Answer:
        parameters = {"read_level": level, "max_staleness": f"{bound_s}s", "read_position": position}
        with _sql_errors():
            await self._connection.execute("; ".join(f"set triplicate.{name} = '{value}'" for name, value in parameters.items()))
            rows = await self._connection.fetch(READ.format("triplicate_read_age()" if asks_age else "cast(null as float8)"))
        return Answer(rows[0][0], frozenset(row[1] for row in rows[1:]), age_s=rows[0][2])

    async def close(self) -> None:
        self._connection.terminate()


@contextmanager
def _sql_errors() -> Iterator[None]:
    try:
        yield
    except asyncpg.PostgresError as error:
        raise Refused(str(error.sqlstate)) from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        # An internal error is met on a connection that ends while a statement is sent.
        raise Lost(str(error)) from error


def sql_doors(database: str) -> Connect:
    """Connects to a database at a node."""

    async def connect(address: Address) -> Door:
        host, port = address
        with _sql_errors():
            return SqlDoor(await asyncpg.connect(host=host, port=port, user="levels", database=database))

    return connect


class StoreDoor:
    """A connection to a node's store."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def write(self, mark: int) -> int:
        # An earlier mark whose outcome is unknown may still be on its way: it is not to replace this one later.
        await self._ask("WATCH", KEYS[0])
        await self._ask("MULTI")
        await self._ask("MSET", *(word for key in KEYS for word in (key, mark)))
        if await self._ask("EXEC") is None:
            raise Refused("another mark was written meanwhile")
        return int(await self._ask("TRIPLICATE.POSITION"))

    async def read(self, level: str, bound_s: float, position: int, *, asks_age: bool) -> Answer:
        bound: Command = (f"{bound_s:g}",) if level == "bounded" else ()
        await self._ask("TRIPLICATE.LEVEL", level, *bound)
        if level == "session":
            await self._ask("TRIPLICATE.POSITION", position)
        first, second = await self._ask("MGET", *KEYS)
        last = await self._ask("TRIPLICATE.LASTREAD") if asks_age else {}
        age_s = None if last.get(b"age") is None else float(last[b"age"])
        return Answer(int(await self._ask("TRIPLICATE.POSITION")), frozenset(range(1, int(first or 0) + 1)), first != second, age_s)

    async def _ask(self, *command: Word) -> Any:
        try:
            await self._connection.send_command(*command)
            return await self._connection.read_response()
        except (redis.ResponseError, redis.BusyLoadingError) as error:
            raise Refused(code_of(error)) from error
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise Lost(str(error)) from error

    async def close(self) -> None:
        await self._connection.disconnect(nowait=True)


def store_doors(store: str) -> Connect:
    """Connects to a store at a node."""

    async def connect(address: Address) -> Door:
        host, port = address
        connection: Any = redis.asyncio.Connection(
            host=host,
            port=port,
            username=store,
            password="any",
            protocol=3,
            socket_timeout=WAIT_LIMIT_S,
            retry=Retry(NoBackoff(), 0),
        )
        door = StoreDoor(connection)
        try:
            await connection.connect()
        except redis.RedisError as error:
            raise Lost(str(error)) from error
        except BaseException:  # Such as a limit of time.
            await door.close()
            raise
        return door

    return connect
