"""Queries with AS OF: each has a session of its own, which reads the past and ends with the query's rows."""

from __future__ import annotations

from dataclasses import replace

from triplicate.runtime import shielded
from triplicate.sql.core.interface import Column, Cursor, Row, Session
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.live_table_rows import LiveTableRows
from triplicate.sql.pg.protocol.plans import plan_as_of
from triplicate.sql.pg.protocol.prepared_statements import Portal, check_shape, engine_parameters
from triplicate.sql.pg.protocol.setting_commands import SettingCommands
from triplicate.sql.pg.syntax.as_of_clause import AsOfQuery


class _PastCursor:
    """The rows of a query, which closes its session at their end."""

    def __init__(self, session: Session, cursor: Cursor) -> None:
        self._session = session
        self._cursor = cursor
        self.rows_affected = 0

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._cursor.columns

    @property
    def is_at_end(self) -> bool:
        return self._cursor.is_at_end

    async def fetch(self, max_rows: int) -> list[Row]:
        return await self._closed_at_end(await self._cursor.fetch(max_rows))

    async def fetch_batch(self, max_rows: int) -> list[Row]:
        return await self._closed_at_end(await self._cursor.fetch_batch(max_rows))

    async def _closed_at_end(self, rows: list[Row]) -> list[Row]:
        if self.is_at_end:
            await self.close()
        return rows

    async def close(self) -> None:
        try:
            await self._cursor.close()
        finally:
            await shielded(self._session.close())


class PastQueries:
    """Starts the queries with AS OF of one connection."""

    def __init__(self, state: ConnectionState, settings: SettingCommands) -> None:
        self._state = state
        self._live = LiveTableRows(state, settings)

    async def start(self, portal: Portal, query: AsOfQuery) -> Cursor:
        """Start the query of a portal. It gets a plan for the tables of then, unless it has it, since its point is a constant.

        Raises:
            SqlError: 0A000, the result had other columns then than the client knows; and as `Session.session_as_of` and `Session.start`.
        """
        state, clause = self._state, query.clause
        session = await state.session.session_as_of(clause.point(portal.parameters))
        try:
            # The time of a constant may have got transactions since, where the clocks of two leaders differ.
            if query.planned_for != session.schema_version[0]:
                statement = portal.statement
                plan = await plan_as_of(session, query, statement.plan.parameter_oids)
                if statement.is_fixed:
                    plan = check_shape(plan, statement.plan)
                portal.statement = replace(statement, plan=plan)
            prepared = portal.statement.plan.prepared
            assert prepared is not None, "a query with AS OF is one of the engine"
            live = await self._live.rows(portal) if portal.statement.plan.live else ()
            parameters = engine_parameters(_without_point(portal), state.time, state.users(), live)
            return _PastCursor(session, await session.start(prepared, parameters))
        except BaseException:
            await shielded(session.close())
            raise


def _without_point(portal: Portal) -> Portal:
    """A portal whose parameters end where those begin that the session supplies: the point of the query may come after them."""
    supplied = portal.statement.plan.supplied
    return replace(portal, parameters=portal.parameters[: supplied[0].number - 1]) if supplied else portal
