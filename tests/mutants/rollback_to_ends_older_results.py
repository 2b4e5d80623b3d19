"""ROLLBACK TO closes the results that were opened before the savepoint, too."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.open_results import OpenResults

TESTS = ["tests/unit/sql/engine/test_session_results.py::test_rollback_to_a_savepoint_ends_the_results_within_it_and_no_others"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    close = OpenResults.close

    async def close_all(self: OpenResults, *, since: int = 0) -> None:
        await close(self)

    patch(OpenResults, "close", close_all)
