"""CREATE TRIGGER fails where changes of the table could not be prepared before, for another reason."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.sql.executor import stored_queries

TESTS = ["tests/unit/sql/executor/test_stored_queries.py::test_a_trigger_is_not_blamed_for_what_failed_before_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def first_fault(connection: apsw.Connection, trigger: str) -> apsw.Error | None:
        ((table,),) = connection.execute("select tbl_name from sqlite_schema where name = ?", (trigger,)).fetchall()
        faults = [stored_queries._fault(connection, change) for change in stored_queries._changes(connection, str(table))]
        return next((fault for fault in faults if fault is not None), None)

    patch(stored_queries, "_trigger_fault", first_fault)
