"""A client that goes away while its COMMIT is at the log cancels the outcome for all others that wait for it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.interactive_transaction import InteractiveTransaction

TESTS = [
    "tests/unit/sql/engine/test_interactive_transaction.py::test_a_wait_that_is_cancelled_leaves_the_outcome_to_others",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def await_outcome(self: InteractiveTransaction) -> None:
        await self._outcome

    patch(InteractiveTransaction, "_known_outcome", await_outcome)
