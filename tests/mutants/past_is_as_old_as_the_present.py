"""The past is shown with no age, as the state of a leader."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/backup/test_past_databases.py::test_a_session_in_the_past_says_where_it_reads_and_how_old_that_is"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.backup.past_databases import PastDatabases

    patch(PastDatabases, "_age_s", lambda self, facts: 0.0)
