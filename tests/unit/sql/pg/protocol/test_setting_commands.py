"""Parameters that the session's engine follows: what SET, RESET and the end of a transaction change in it."""

from __future__ import annotations

from tests.unit.sql.pg.raw_client import RawClient, query
from tests.unit.sql.pg.server_rig import Served, play
from triplicate.sql.core.read_levels import ReadLevel, ReadSettings


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
