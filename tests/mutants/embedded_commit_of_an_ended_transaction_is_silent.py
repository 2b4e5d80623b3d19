"""A COMMIT of a transaction that has ended is answered as a commit in the process."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/sql/engine/test_in_process_session.py::test_a_commit_of_a_transaction_that_has_ended_is_an_error",
    "tests/unit/embedded/test_embedded_database.py::test_a_transaction_whose_statement_was_cancelled_is_not_committed",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.interface import StatementKind
    from triplicate.sql.core.parameter_binding import Parameters
    from triplicate.sql.engine.in_process_session import InProcessSession, StartedStatement

    start = InProcessSession._start_once

    async def silent(self: InProcessSession, sql: str, parameters: Parameters) -> StartedStatement:
        if sql == "COMMIT" or sql == "commit":
            prepared, _ = await self._prepare(sql)
            count = self._counts.begin(sql)
            return StartedStatement(StatementKind.COMMIT, "COMMIT", (), -1, None, await self._session.start(prepared, ()), count)
        return await start(self, sql, parameters)

    patch(InProcessSession, "_start_once", silent)
