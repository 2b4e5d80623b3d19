"""Runs of Bind and Execute of one prepared change, as `executemany` of the client libraries sends them, in one call of the engine.

Each statement of a run gets its own answers. If one fails, the statements before it are answered as completed, the error follows, and the
rest is skipped up to the next Sync, as without a run. The failed transaction keeps nothing of the run either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from triplicate.errors import SqlError
from triplicate.sql.core.interface import StatementKind, TransactionStatus, Value
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.plans import StatementPlan
from triplicate.sql.pg.protocol.prepared_statements import Portal, completion, parameter_decoders, update_plan
from triplicate.sql.pg.protocol.setting_commands import SettingCommands
from triplicate.sql.pg.protocol.statement_watch import StatementWatch
from triplicate.sql.pg.values.field_codecs import ParameterDecoder

RUN_STATEMENTS = 256
"""Limit on the statements of a run, which are decoded within one turn of the event loop."""
SHORTEST_RUN = 8
"""A shorter run is executed statement by statement, without a hop to a thread."""
Message = tuple[bytes, bytes]
"""Letter and body."""

_CHANGES = ("INSERT", "UPDATE", "DELETE")
_DESCRIBE_UNNAMED = b"P\0"
_BOUND_AND_DESCRIBED = wire.BIND_COMPLETE + wire.NO_DATA


class _ExecutionRun:
    """Statements that are executed together."""

    __slots__ = ("answers", "failure", "first", "rows", "unserved")

    def __init__(self, first: Portal) -> None:
        self.first = first
        self.rows = [first.parameters]
        """The parameters of each statement."""
        self.answers: list[bytes] = [b""]
        """The answers of each statement before its completion."""
        self.unserved: list[Message] = []
        """Messages that were received after the run and do not belong to it."""
        self.failure: SqlError | None = None
        """The error of a Bind after the last statement."""

    def portal(self, index: int) -> Portal:
        """The portal of a statement."""
        return Portal(self.first.statement, self.rows[index], self.first.result_formats) if index else self.first


class ExecutesPortals(Protocol):
    """Executes one statement of a run that is too short for a call of its own."""

    async def start(self, portal: Portal) -> None: ...

    async def execute(self, portal: Portal, max_rows: int, *, is_described: bool) -> None: ...


class StatementRuns:
    """Executes the runs of one connection."""

    def __init__(self, state: ConnectionState, settings: SettingCommands, portals: ExecutesPortals) -> None:
        self._state = state
        self._settings = settings
        self._portals = portals
        self._watch = StatementWatch(state)

    def begins_with(self, portal: Portal) -> bool:
        """Whether a portal may be the first of a run: a change without a result in a transaction, whose next message is another Bind."""
        state, plan = self._state, portal.statement.plan
        prepared = plan.prepared
        return (
            prepared is not None
            and prepared.kind is StatementKind.WRITE
            and not prepared.columns
            and prepared.tag in _CHANGES
            and not plan.supplied
            and plan.unexamined is None
            and portal.cursor is None
            and state.portals.get("") is portal
            and state.settings.statement_timeout_s <= 0
            and state.session.status is TransactionStatus.ACTIVE
            and state.stream.peek() == b"B"
        )

    async def execute(self, portal: Portal) -> Sequence[Message]:
        """Execute a portal, and with it the statements of its run that have arrived.

        Returns:
            Messages that were received after the run and do not belong to it. They must be served next.

        Raises:
            SqlError: a statement of the run has failed, or its Bind.
        """
        run = self._collect(portal)
        if len(run.rows) < SHORTEST_RUN:
            for index, answers in enumerate(run.answers):
                self._state.stream.write(answers)
                last = run.portal(index)
                await self._portals.start(last)
                await self._portals.execute(last, 0, is_described=True)
        else:
            await self._change(run)
            last = run.portal(len(run.rows) - 1)
            last.is_done = True
        self._state.portals[""] = last
        if run.failure is not None:
            raise run.failure
        return run.unserved

    async def _change(self, run: _ExecutionRun) -> None:
        """Execute the statements in one call of the engine, and send their answers."""
        state, statement = self._state, run.first.statement
        session = state.session
        prepared = statement.plan.prepared
        assert prepared is not None, "only changes begin a run"
        self._settings.check_access(prepared, "")
        await session.check_rights(prepared)
        await session.claim_writer(prepared.tag)
        if statement.schema_version != session.schema_version:
            await update_plan(session, statement, state.plans)
            prepared = statement.plan.prepared or prepared
        change = await session.bulk_change(prepared, is_one_statement=False)
        watched = self._watch.portal_of(statement)
        try:
            await change.run(_in_engines_order(run.rows, statement.plan))
        finally:
            counts = change.counts
            self._watch.end(watched, sum(counts), max(1, len(counts)), failed=len(counts) < len(run.rows))
            self._answer(run, prepared.tag, counts)

    def _answer(self, run: _ExecutionRun, tag: str, counts: Sequence[int]) -> None:
        """Send the answers of the statements that have run, and those of a failed one before its error."""
        parts: list[bytes] = []
        for answers, count in zip(run.answers, counts, strict=False):
            parts.append(answers)
            parts.append(completion(tag, 0, count))
        parts += run.answers[len(counts) : len(counts) + 1]
        self._state.stream.write(b"".join(parts))

    def _collect(self, first: Portal) -> _ExecutionRun:
        """Receive the messages of the run that have arrived. Nothing is awaited."""
        state = self._state
        next_body, run = state.stream.next_body, _ExecutionRun(first)
        shape: wire.BindShape | None = None
        oids = first.statement.plan.parameter_oids
        decoders: Sequence[ParameterDecoder] = ()
        while len(run.rows) < RUN_STATEMENTS and (body := next_body(b"B")) is not None:
            values = None if shape is None else shape.values(body)
            if shape is None or values is None:
                shape = wire.bind_shape(body)
                if not self._belongs(shape, first):
                    run.unserved = [(b"B", body)]
                    break
                values, decoders = shape.values(body), ()
            described = next_body(b"D")
            executed = next_body(b"E") if described in (None, _DESCRIBE_UNNAMED) else None
            if executed is None or executed[:1] != b"\0" or values is None:
                messages = ((b"B", body), (b"D", described), (b"E", executed))
                run.unserved = [(letter, found) for letter, found in messages if found is not None]
                break
            try:
                if not decoders or len(values) != len(decoders):
                    decoders = _decoders(shape, oids, len(values))
                run.rows.append(tuple([decode(value) for decode, value in zip(decoders, values, strict=True)]))
            except SqlError as error:
                run.failure = error
                break
            run.answers.append(wire.BIND_COMPLETE if described is None else _BOUND_AND_DESCRIBED)
        state.receive_run(len(run.rows) - 1)
        return run

    def _belongs(self, shape: wire.BindShape, first: Portal) -> bool:
        """Whether a Bind has the statement of the run and no name for its portal."""
        return not shape.portal and self._state.statements.get(shape.statement) is first.statement and len(shape.result_formats) < 2


def _decoders(shape: wire.BindShape, oids: tuple[int, ...], count: int) -> Sequence[ParameterDecoder]:
    """The decoders of the values. Raises SqlError as `bind`."""
    if count != len(oids):
        raise SqlError("08P01", f"the bind message supplies {count} parameters, but the statement requires {len(oids)}")
    return parameter_decoders(oids, shape.parameter_formats, shape.result_formats)


def _in_engines_order(rows: Sequence[tuple[Value, ...]], plan: StatementPlan) -> Sequence[tuple[Value, ...]]:
    """The parameters of each statement as the engine has them."""
    indexes = plan.parameter_indexes
    if indexes is not None:
        return [tuple([row[index] for index in indexes]) for row in rows]
    count = len(plan.prepared.parameters) if plan.prepared is not None else 0
    return rows if count == len(rows[0]) else [row[:count] for row in rows]
