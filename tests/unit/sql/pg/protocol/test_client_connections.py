"""Many connections: their memory while they are idle, and a burst of them."""

from __future__ import annotations

import asyncio
import gc
import resource
import tracemalloc

import pytest

from tests.unit.sql.pg.chunk_rig import ChunkClient, letters, with_connections
from tests.unit.sql.pg.local_engine import LocalDatabase
from tests.unit.sql.pg.raw_client import SYNC, RawClient, bind, execute, parse, query
from tests.unit.sql.pg.server_rig import Served, run
from triplicate.sql.pg import ServerLimits
from triplicate.sql.pg.protocol.client_connections import ClientConnections

MANY = 2000


def test_an_idle_connection_needs_little_memory() -> None:
    """Its socket and the engine's session need as much again. Two hundred connections are to need less than 30 MB."""

    async def body(connections: ClientConnections, database: LocalDatabase) -> None:
        rounds = (parse("select $1::int + 1", "s"), bind(b"1", statement="s"), execute(), SYNC)
        clients = [await ChunkClient.connect(connections, database)]
        await clients[0].send_chunks(rounds)
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(50):
                clients.append(await ChunkClient.connect(connections, database))
                assert letters(await clients[-1].send_chunks(rounds)) == "12DCZ"
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] / 50 < 15_000
        finally:
            tracemalloc.stop()

    with_connections(body)


def test_a_burst_of_connections_is_served() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * MANY + 200
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"this machine allows {hard} open files, and {needed} are needed")

    async def body(s: Served) -> None:
        clients = await asyncio.gather(*[RawClient.connect(*s.server.address) for _ in range(MANY)])
        assert s.server.connections.count == MANY
        answers = await asyncio.gather(*[client.send(query("select 1")) for client in clients])
        assert all(answer == ["T ?column?:20", "D 1", "C SELECT 1", "Z I"] for answer in answers)
        for client in clients:
            client.close()

    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    try:
        run(body, ServerLimits(connections=MANY))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
