"""The special columns of a table are read by a statement, so a COPY that begins a transaction has read when it writes."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.interface import SpecialColumns
from triplicate.sql.engine.session import SqlSession

TESTS = [
    "tests/unit/sql/engine/test_session.py::test_a_transaction_that_has_asked_for_the_columns_of_a_table_only_has_read_nothing",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def special(self: SqlSession, table: str) -> SpecialColumns:
        columns = []
        for condition in ("pk > 0", "hidden in (2, 3)"):
            query = f"select name from pragma_table_xinfo('{table}') where {condition}"
            cursor = await self.start(await self.prepare(query), ())
            columns.append([str(name) for (name,) in await cursor.fetch(1000)])
            await cursor.close()
        return SpecialColumns(*columns)

    patch(SqlSession, "special_columns", special)
