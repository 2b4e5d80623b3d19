"""Parameters that the session's engine follows: what SET, RESET and the end of a transaction change in it."""

from __future__ import annotations

from tests.unit.sql.pg.raw_client import RawClient, query
from tests.unit.sql.pg.server_rig import Served, play
from triplicate.sql.core.read_levels import ReadLevel, ReadSettings


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


def test_the_level_of_reads_follows_the_parameters() -> None:
    async def body(client: RawClient, s: Served) -> None:
        session = s.database.sessions[-1]
        assert session.reads == ReadSettings()
        await client.send(query("set triplicate.read_level = 'session'"), query("set triplicate.read_position = '17'"))
        assert session.reads == ReadSettings(ReadLevel.SESSION, position=17)
        await client.send(query("begin"), query("set local triplicate.read_level to any"))
        assert session.reads == ReadSettings(ReadLevel.ANY, position=17)
        await client.send(query("commit"))
        assert session.reads == ReadSettings(ReadLevel.SESSION, position=17)
        assert await client.send(query("set triplicate.read_level = nonsense")) == ["E ERROR 22023", "Z I"]
        assert await client.send(query("set triplicate.max_staleness = 0")) == ["E ERROR 22023", "Z I"]
        assert session.reads == ReadSettings(ReadLevel.SESSION, position=17)
        answers = await client.send(query("select set_config('triplicate.max_staleness', '2s', false)"))
        assert answers == ["T set_config:25", "D 2s", "C SELECT 1", "Z I"]
        assert session.reads.max_staleness_s == 2.0
        answers = await client.send(query("show triplicate.read_level"))
        assert answers == ["T triplicate.read_level:25", "D session", "C SHOW", "Z I"]
        await client.send(query("reset triplicate.read_level"))
        assert session.reads.level is ReadLevel.DEFAULT
        await client.send(query("discard all"))
        assert session.reads == ReadSettings()

    play(body)
