"""A value that cannot be read is reported where the table does not exist."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/pg/protocol/test_plans.py::test_a_table_that_does_not_exist_is_reported_first"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.pg.protocol import plans

    async def require_tables(*_: object) -> None:
        return None

    patch(plans, "_require_tables", require_tables)
