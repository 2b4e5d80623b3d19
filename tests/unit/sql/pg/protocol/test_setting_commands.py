"""Parameters that the engine acts upon."""

from __future__ import annotations

from tests.unit.sql.pg.raw_client import RawClient, query
from tests.unit.sql.pg.server_rig import Served, play


def test_a_point_in_the_past_reaches_the_engine_and_is_shown_as_a_position() -> None:
    async def body(client: RawClient, s: Served) -> None:
        assert await client.send(query("set triplicate.as_of = 'time 2026-01-31'")) == ["C SET", "Z I"]
        assert await client.send(query("show triplicate.as_of")) == ["T triplicate.as_of:25", "D position 7", "C SHOW", "Z I"]
        assert await client.send(query("reset triplicate.as_of")) == ["C RESET", "Z I"]
        answers = await client.send(query("select set_config('triplicate.as_of', 'position 7', false)"))
        assert answers == ["T set_config:25", "D position 7", "C SELECT 1", "Z I"]
        await client.send(query("discard all"))
        assert (await client.send(query("show triplicate.as_of")))[0] == "T triplicate.as_of:25"
        assert await client.send(query("begin; set local triplicate.as_of = 'position 7'")) == ["C BEGIN", "E ERROR 0A000", "Z E"]
        assert s.database.sessions[-1].travels == ["time 2026-01-31", None, "position 7", None]

    play(body)
