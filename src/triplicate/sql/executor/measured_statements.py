"""Which statements SQLite's steps measure, so that a limit on the steps bounds the time that they take."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import apsw

from triplicate.sql.executor.examined_schema import ExaminedSchema

_CHARACTERS = 4096
"""Length of the longest such statement. Planning a longer one may take long itself."""
_FUNCTIONS = frozenset(
    {
        "abs",
        "avg",
        "coalesce",
        "count",
        "hex",
        "ifnull",
        "iif",
        "length",
        "lower",
        "max",
        "min",
        "nullif",
        "octet_length",
        "quote",
        "round",
        "sign",
        "substr",
        "substring",
        "sum",
        "total",
        "triplicate_divisor",
        "triplicate_limit",
        "triplicate_position",
        "triplicate_read_age",
        "triplicate_read_node",
        "triplicate_single",
        "triplicate_to_bool",
        "triplicate_to_int2",
        "triplicate_to_int4",
        "triplicate_to_int8",
        "triplicate_to_text",
        "triplicate_to_varchar",
        "typeof",
        "unicode",
        "upper",
    }
)
"""Functions of a few microseconds that change nothing. Patterns are missing: LIKE can take exponential time."""


def is_measured(
    connection: apsw.Connection,
    schema: ExaminedSchema,
    sql: str,
    tables: AbstractSet[str],
    functions: AbstractSet[str],
    parameters: int,
) -> bool:
    """Whether a limit on the steps bounds the time of a statement that reads.

    Args:
        tables, functions: those to which it refers, views included.
        parameters: how many values it takes. SQLite lists the steps for any values, but asks for them.
    """
    if len(sql) > _CHARACTERS or not functions <= _FUNCTIONS:
        return False
    if any(schema.kind(table) is None or _is_computed(connection, table) for table in tables):
        return False
    # The count of all rows of a table is one step.
    return "count" not in functions or all(
        row[1] != "Count" for row in connection.execute(f"explain {sql}", (None,) * parameters, can_cache=False)
    )


def _is_computed(connection: apsw.Connection, table: str) -> bool:
    """Whether a table has computed columns, whose functions SQLite's authorizer does not report."""
    return bool(connection.execute("select 1 from pragma_table_xinfo(?) where hidden = 2", (table,)).fetchall())
