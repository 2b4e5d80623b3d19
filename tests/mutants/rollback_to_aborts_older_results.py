"""SQLite's ROLLBACK TO aborts the results that were opened before the savepoint, where the transaction has changed the schema."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.session_database import HeldWriter

TESTS = ["tests/unit/sql/engine/test_session_results.py::test_rollback_to_a_savepoint_ends_the_results_within_it_and_no_others"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def roll_back(self: HeldWriter, name: str) -> None:
        self.writer.rollback_to(name)

    patch(HeldWriter, "restart_savepoint", roll_back)
