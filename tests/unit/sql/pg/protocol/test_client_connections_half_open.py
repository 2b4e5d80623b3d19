"""A server with many connections whose clients have not logged in."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.sql.pg.login_rig import Door, run_door
from tests.waiting import eventually
from triplicate.sql.pg import ServerLimits


def test_a_flood_of_connections_is_bounded_and_a_client_logs_in_meanwhile(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        async with await door.psycopg() as before:
            flood = [await asyncio.open_connection("127.0.0.1", door.port) for _ in range(60)]
            await eventually(lambda: door.refused("half_open") == 50)
            await eventually(lambda: door.server.connections.count == 11)
            async with await door.psycopg():
                pass
            await before.execute("select 1")
            for _, writer in flood:
                writer.close()
            await eventually(lambda: door.server.connections.count == 1)

    run_door(tmp_path, body, ServerLimits(half_open=20, half_open_per_address=10))
