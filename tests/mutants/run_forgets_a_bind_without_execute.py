"""A Bind that was received with a run and has no Execute yet is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.pg.protocol.prepared_statements import Portal
from triplicate.sql.pg.protocol.statement_runs import Message, StatementRuns

TESTS = ["tests/unit/sql/pg/protocol/test_statement_runs.py::test_messages_of_other_kinds_follow_a_run"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    execute = StatementRuns.execute

    async def forgetful(self: StatementRuns, portal: Portal) -> Sequence[Message]:
        await execute(self, portal)
        return ()

    patch(StatementRuns, "execute", forgetful)
