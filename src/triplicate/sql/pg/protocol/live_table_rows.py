"""The rows of live tables for the statements of one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from triplicate.runtime import TaskScope, fail, resolve
from triplicate.sql.catalogue.live_tables import rows_parameter
from triplicate.sql.core.live_rows import LiveRequest, LiveRow
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.prepared_statements import Portal
from triplicate.sql.pg.protocol.setting_commands import SettingCommands


class LiveTableRows:
    """Makes them by the rights of the current role, as they are when the statement begins."""

    def __init__(self, state: ConnectionState, settings: SettingCommands) -> None:
        self._state = state
        self._settings = settings

    async def rows(self, portal: Portal) -> list[str]:
        """The parameters with the rows of a statement's live tables.

        Raises:
            SqlError: 57014, the statement was cancelled meanwhile; 0A000, this database has no such rows; and as the sources.
        """
        state = self._state
        found: list[str] = []
        for use in portal.statement.plan.live:
            if use.table == "pg_settings":
                rows: Sequence[LiveRow] = self._settings.setting_rows()
            else:
                source = state.database.activity.live_source(use.table)
                request = LiveRequest(use.values(portal.parameters), state.session.roles.acting, state.session.access)
                rows = await self._interruptible(source(request))
            found.append(await rows_parameter(rows, state.session.offload))
        return found

    async def _interruptible(self, work: Coroutine[Any, Any, Sequence[LiveRow]]) -> Sequence[LiveRow]:
        """The result of the work, which an interrupt of the connection ends."""
        state, scope = self._state, TaskScope("live rows", on_failure=lambda error: None)
        answer: asyncio.Future[Sequence[LiveRow]] = asyncio.get_running_loop().create_future()

        async def read() -> None:
            try:
                resolve(answer, await work)
            except Exception as error:  # noqa: BLE001  it is raised below
                fail(answer, error)

        state.interrupted = answer
        try:
            scope.spawn(read(), name="read")
            return await answer
        finally:
            state.interrupted = None
            await scope.aclose()
