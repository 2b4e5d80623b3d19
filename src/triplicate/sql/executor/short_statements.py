"""Which statements of the writing connection may run on the event loop, because they end after few steps."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from triplicate.sql.core.bounded_program import Instruction, is_bounded
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.interface import Prepared, StatementKind
from triplicate.sql.core.schema_cache import SchemaCache
from triplicate.sql.storage.sqlite_schema import has_virtual_tables
from triplicate.sql.storage.sqlstates import FAULTS

_REMEMBERED = 2000
"""Statements that are remembered."""
_STATEMENT_CHARACTERS = 4096
"""Length of the longest statement that is short. The time to prepare it grows with the length."""
_PARAMETER_CHARACTERS = 16 * 1024
"""Upper bound on the characters and bytes of all parameters."""


class ShortStatements:
    """Examines the programs of statements on one connection, and remembers the results while the schema stays."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: SchemaCache[bool] = SchemaCache(_REMEMBERED, _STATEMENT_CHARACTERS)
        self._schema_version = -1
        self._has_virtual_tables = False
        self._small_roots: frozenset[int] = frozenset()

    def includes(self, prepared: Prepared, parameters: Sequence[Value], schema_version: int) -> bool:
        """Whether a statement is short in the schema of this version, which is the connection's."""
        if schema_version != self._schema_version:
            self._load_schema(schema_version)
        is_short = self._known.find(prepared.sql, schema_version)
        if is_short is None:
            is_short = self._examine(prepared)
            self._known.remember(prepared.sql, is_short, schema_version)
        return is_short and _are_small(parameters)

    def _load_schema(self, schema_version: int) -> None:
        self._known.move_to(schema_version)
        self._schema_version = schema_version
        self._has_virtual_tables = has_virtual_tables(self._connection)
        roots = self._connection.execute("select rootpage from main.sqlite_schema where name = 'sqlite_sequence'")
        self._small_roots = frozenset(int(root) for (root,) in roots)  # It has one row for each table.

    def _examine(self, prepared: Prepared) -> bool:
        # Each savepoint has full-text tables write what they hold back, whose size no program shows.
        if self._has_virtual_tables or len(prepared.sql) > _STATEMENT_CHARACTERS:
            return False
        if prepared.kind not in (StatementKind.READ, StatementKind.WRITE) or prepared.tag == "EXPLAIN":
            return False
        try:
            rows = self._connection.execute(f"explain {prepared.sql}", apsw._null_bindings, can_cache=False)  # type: ignore[attr-defined]
            return is_bounded([Instruction(*row) for row in rows], self._small_roots)
        except FAULTS:
            return False  # The statement fails again when it runs, which says why.


def _are_small(parameters: Sequence[Value]) -> bool:
    characters = 0
    for value in parameters:
        if isinstance(value, (str, bytes)):
            characters += len(value)
    return characters <= _PARAMETER_CHARACTERS
