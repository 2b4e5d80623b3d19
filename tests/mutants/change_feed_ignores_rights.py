"""The change feed shows a role the changes of tables that it may not read."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/sql/hosting/test_live_sources.py::test_a_role_gets_the_changes_of_the_tables_that_it_may_read",
    "tests/unit/sql/hosting/test_live_sources.py::test_a_role_gets_no_changes_of_an_earlier_table_of_the_same_name",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.committed_changes import Wants
    from triplicate.sql.hosting import live_sources
    from triplicate.sql.hosting.change_feed import FindRead, wanted_by_role

    def of_everything(may_read: FindRead, since: dict[str, int], table: str | None) -> Wants:
        return wanted_by_role(lambda name: True, {}, table)

    patch(live_sources, "wanted_by_role", of_everything)
