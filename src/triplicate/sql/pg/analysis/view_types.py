"""The types of a view's columns for the comment in its stored text. Pure."""

from __future__ import annotations

from triplicate.sql.core.view_columns import PLAIN, PRECISION_MAX, UNKNOWN
from triplicate.sql.pg.analysis.analyzer import expanded_row, rows_of
from triplicate.sql.pg.analysis.name_scope import Outputs, Relation
from triplicate.sql.pg.analysis.scales import common_scale
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.syntax.nodes import Expression
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import declared_name, type_of_name


def view_types(query: nodes.QueryExpression, outputs: Outputs) -> tuple[str, ...]:
    """The type of each column, as `triplicate.sql.core.view_columns` has it.

    Args:
        query: analysed. outputs: its columns.
    """
    rows = [expanded_row(row) for row in rows_of(query.body)]
    if any(len(row) != len(outputs) for row in rows):
        return tuple([declared_name(oid) or UNKNOWN for _, oid in outputs])
    return tuple([_type_of(list(column), oid) for column, (_, oid) in zip(zip(*rows, strict=True), outputs, strict=True)])


def _type_of(column: list[Expression], oid: int | None) -> str:
    """The type of a column.

    Args:
        column: its expression in each part of the query.
    """
    first = column[0]
    if len(column) == 1 and first.as_oid is None:
        if isinstance(first, nodes.ColumnRef) and isinstance(first.relation, Relation) and first.relation.is_stored(first.name.last):
            return PLAIN
        if isinstance(first, nodes.Cast):
            modifiers = type_of_name(first.type)[1]
            if modifiers and oid in (types.NUMERIC, types.VARCHAR):
                return f"{declared_name(oid)}({','.join(map(str, modifiers))})"
    scale = common_scale(column) if oid == types.NUMERIC else None
    return f"numeric({PRECISION_MAX},{scale})" if scale is not None else declared_name(oid) or UNKNOWN
