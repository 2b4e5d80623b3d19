"""COPY with ACTION delete compares the first column of the primary key only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.pg.protocol import copy_in
from triplicate.sql.pg.syntax.copy_statement import CopyAction, CopyStatement

TESTS = ["tests/unit/sql/pg/protocol/test_copy_commands.py::test_rows_are_changed_and_deleted_by_their_primary_key"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    change = copy_in._change

    def by_a_part(command: CopyStatement, columns: Sequence[str], key: Sequence[str]) -> str:
        sql = change(command, columns, key)
        return sql.replace('AND "a" = $2', "AND $2 > 0") if command.options.action is CopyAction.DELETE else sql

    patch(copy_in, "_change", by_a_part)
