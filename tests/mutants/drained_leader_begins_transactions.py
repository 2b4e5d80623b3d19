"""A leader that gives way to another node goes on to begin transactions."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/hosting/test_leader_moves.py::test_a_transaction_that_runs_is_committed_before_the_leader_moves"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.leadership import Leadership

    async def drain(self: Leadership, limit_s: float) -> bool:
        return True

    patch(Leadership, "drain", drain)
