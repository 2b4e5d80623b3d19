"""EXPLAIN on one connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Row, StatementKind, TransactionStatus
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.implicit_transaction import ImplicitTransaction
from triplicate.sql.pg.protocol.prepared_statements import Portal, PreparedStatement, engine_parameters, prepare_statement
from triplicate.sql.pg.protocol.setting_commands import SettingCommands
from triplicate.sql.pg.syntax.explain_statement import ExplainStatement
from triplicate.sql.pg.translate.query_plan import Execution, PlanNode, plan_json, plan_lines, plan_tree, rows_of_plan

_PLAN_ROWS_MAX = 10_000
_EXPLAINED = (StatementKind.READ, StatementKind.WRITE)


class RunsPortals(Protocol):
    """The part of `PortalRunner` that EXPLAIN ANALYZE uses."""

    async def start(self, portal: Portal) -> None: ...

    async def next_rows(self, portal: Portal) -> Sequence[Row]: ...


class ExplainCommand:
    """Shows how SQLite runs a statement, and with ANALYZE runs it.

    Args:
        portals: runs the statement.
    """

    def __init__(self, state: ConnectionState, transaction: ImplicitTransaction, settings: SettingCommands, portals: RunsPortals) -> None:
        self._state = state
        self._transaction = transaction
        self._settings = settings
        self._portals = portals

    async def run(self, portal: Portal, command: ExplainStatement, *, is_described: bool) -> None:
        """Run the command of a portal, and send its answer.

        Args:
            is_described: whether the client knows the column, and Sync commits the changes of the statement.

        Raises:
            SqlError: as the statement.
        """
        state, now = self._state, self._state.clock.monotonic
        if state.session.status is TransactionStatus.FAILED:
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        began_s = now()
        oids = portal.statement.plan.parameter_oids
        inner = await prepare_statement(state.session, command.statement, oids, state.plans, is_fixed=False)
        plan = await self._plan(inner, portal)
        planned_s = now()
        execution: Execution | None = None
        if command.analyze:
            rows = await self._run(inner, portal, in_transaction=is_described)
            execution = Execution(now() - planned_s, rows, planned_s - began_s)
        if not is_described:
            state.stream.write(self._settings.description(command))
        for line in [plan_json(plan, execution)] if command.is_json else plan_lines(plan, execution):
            state.stream.write(wire.data_row([line.encode()]))
        state.stream.write(wire.command_complete("EXPLAIN"))

    async def _plan(self, inner: PreparedStatement, portal: Portal) -> PlanNode:
        state, prepared = self._state, inner.plan.prepared
        if prepared is None or prepared.kind not in _EXPLAINED:
            raise SqlError("0A000", "EXPLAIN shows queries and changes of rows only")
        explained = await state.session.prepare(f"EXPLAIN QUERY PLAN {prepared.sql}")
        shown = Portal(inner, portal.parameters, ())
        parameters = engine_parameters(shown, state.time, state.users(), ["[]"] * len(inner.plan.live))
        cursor = await state.session.start(explained, parameters)
        try:
            rows = await cursor.fetch(_PLAN_ROWS_MAX)
        finally:
            await cursor.close()
        return plan_tree(rows_of_plan(rows), inner.statement)

    async def _run(self, inner: PreparedStatement, portal: Portal, *, in_transaction: bool) -> int:
        """Run the statement; the number of rows that it returns or changes."""
        prepared = inner.plan.prepared
        assert prepared is not None, "only statements of the engine are explained"
        if in_transaction and prepared.kind is StatementKind.WRITE:
            await self._transaction.begin()
        running, count = Portal(inner, portal.parameters, ()), 0
        try:
            await self._portals.start(running)
            if not prepared.columns:
                return running.cursor.rows_affected if running.cursor is not None else 0
            while rows := await self._portals.next_rows(running):
                count += len(rows)
            return count
        finally:
            await running.close()
