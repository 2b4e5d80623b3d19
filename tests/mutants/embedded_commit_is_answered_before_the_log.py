"""A change of an embedded database is answered while its record is on the way to the bookie."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/embedded/test_embedded_database.py::test_a_commit_to_a_folder_is_synced_before_it_returns",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.leadership import Leadership
    from triplicate.sql.executor.statement_batches import AutocommitRequest, StatementOutcome

    submit = Leadership.submit
    kept = []

    def early(self: Leadership, request: AutocommitRequest) -> object:
        async def answer() -> StatementOutcome:
            return StatementOutcome([], 1)

        kept.append(submit(self, request))  # It goes on by itself.
        return answer()

    patch(Leadership, "submit", early)
