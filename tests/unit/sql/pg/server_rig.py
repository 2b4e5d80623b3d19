"""The PostgreSQL server before an unreplicated engine, for tests with clients in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import psycopg

from tests.unit.sql.pg.local_engine import LocalDatabase, LocalDatabases
from tests.unit.sql.pg.raw_client import RawClient
from triplicate.runtime import real_host
from triplicate.sql.pg import PostgresServer, ServerLimits


@dataclass
class Served:
    server: PostgresServer
    database: LocalDatabase
    databases: LocalDatabases

    @property
    def dsn(self) -> str:
        host, port = self.server.address
        return f"host={host} port={port} dbname=shop user=me"

    async def psycopg(self, **options: Any) -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(self.dsn, **options)

    async def asyncpg(self, **options: Any) -> Any:
        host, port = self.server.address
        return await asyncpg.connect(host=host, port=port, database="shop", user="me", **options)


@asynccontextmanager
async def served(limits: ServerLimits | None = None) -> AsyncIterator[Served]:
    databases = LocalDatabases()
    server = await PostgresServer.open(real_host("pg-test"), databases, ("127.0.0.1", 0), limits)
    try:
        yield Served(server, databases.shop, databases)
    finally:
        await server.stop()


def run(body: Callable[[Served], Awaitable[None]], limits: ServerLimits | None = None) -> None:
    async def main() -> None:
        async with served(limits) as s:
            await body(s)

    asyncio.run(asyncio.wait_for(main(), 30))


def play(body: Callable[[RawClient, Served], Awaitable[None]]) -> None:
    async def scene(s: Served) -> None:
        client = await RawClient.connect(*s.server.address)
        try:
            await body(client, s)
        finally:
            client.close()

    run(scene)
