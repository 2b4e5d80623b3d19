"""COPY FROM commits each slice of its data, so an error in a later line keeps the rows before it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.interface import BulkChange
from triplicate.sql.pg.protocol import copy_in
from triplicate.sql.pg.values.copy_lines import CopyPlace

TESTS = ["tests/unit/sql/pg/protocol/test_copy_commands.py::test_an_error_undoes_all_rows_and_the_rest_of_the_data_is_ignored"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    insert = copy_in.CopyIn._insert

    async def committed(self: copy_in.CopyIn, bulk: BulkChange, place: CopyPlace, rows: copy_in._SliceRows) -> None:
        await insert(self, bulk, place, rows)
        await self._transaction.commit()
        await self._transaction.begin()

    patch(copy_in.CopyIn, "_insert", committed)
