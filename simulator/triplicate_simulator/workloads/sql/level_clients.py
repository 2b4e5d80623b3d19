"""Clients that read at the levels of a session, on any node, and hand positions from one node to another."""

from __future__ import annotations

from triplicate.sql.core.read_levels import ReadLevel, ReadSettings
from triplicate_simulator.checkers.level_rules import StateRead
from triplicate_simulator.workloads.sql.sql_clients import DatabaseClient
from triplicate_simulator.workloads.sql.sql_model import ClientSession, SqlModel

BOUNDS_S = (0.3, 1.0, 3.0)
LEVELS = (ReadLevel.SESSION, ReadLevel.SESSION, ReadLevel.BOUNDED, ReadLevel.BOUNDED, ReadLevel.ANY)
_STATE = """select triplicate_position(), '' union all select triplicate_position(), token from journal
    union all select triplicate_position(), token from crowd"""


class LevelReader(DatabaseClient):
    """Reads whole states, each at a level, on a node of its choice."""

    def __init__(self, model: SqlModel, name: str) -> None:
        super().__init__(model, name)
        self._position = 0
        """Of the last state that it has seen."""

    async def _step(self) -> None:
        await self._pause(1.5)
        servers = [server for server in self._model.servers.values() if server.database is not None]
        if servers:
            await self._visit(self._rng.choice(servers), self._read)

    async def _read(self, session: ClientSession) -> None:
        model, rng = session.model, session.rng
        level, bound_s, wanted = rng.choice(LEVELS), rng.choice(BOUNDS_S), self._position
        if level is ReadLevel.SESSION and model.recent and rng.random() < 0.7:
            # Another client's write, whose position was handed over.
            wanted = max(wanted, model.recent[-1].position)
        session.sql_session.set_reads(ReadSettings(level, bound_s, wanted))
        in_transaction = rng.random() < 0.3
        if in_transaction:
            await session.rows("begin")
            await session.think()
        started_s = session.time()
        rows = await session.rows(_STATE)
        if in_transaction:
            await session.rows("commit")
        position = int(rows[0][0])
        tokens = frozenset(str(row[1]) for row in rows[1:])
        read = StateRead(started_s, session.time(), self.name, session.node, level.value, bound_s, wanted, position, tokens)
        model.note_state(read)
        self._position = position
