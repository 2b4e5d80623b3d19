"""Columns that stand beside an aggregate without being grouped: SQLite takes their values from any row, PostgreSQL refuses. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triplicate.errors import SqlError
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.translate.calls import AGGREGATES


def check_grouping(select: nodes.Select, order: Sequence[nodes.Sort]) -> None:
    """Refuse what is wrong for sure: without GROUP BY, a column outside of the aggregates.

    With GROUP BY a column may depend on a grouped key, which only the table's definition tells; SQLite decides there.

    Raises:
        SqlError: 42803, with the column.
    """
    if select.group:
        return
    expressions = [item.expression for item in select.items]
    if select.having is not None:
        expressions.append(select.having)
    expressions += [sort.expression for sort in order]
    if select.having is None and not any(has_aggregate(expression) for expression in expressions):
        return
    aliases = {item.alias.last.lower() for item in select.items if item.alias is not None}
    for expression in expressions:
        for column in _free_columns(expression):
            if len(column.name.parts) > 1 or column.name.last.lower() not in aliases:
                raise SqlError(
                    "42803",
                    f'column "{".".join(column.name.parts)}" must appear in the GROUP BY clause or be used in an aggregate function',
                    position=column.start + 1,
                )


def _is_aggregate(node: nodes.Node) -> bool:
    if not isinstance(node, nodes.Call) or node.is_window or node.name.last not in AGGREGATES:
        return False
    return node.name.last not in ("min", "max") or len(node.arguments) == 1


def has_aggregate(node: nodes.Node) -> bool:
    """Whether an aggregate of this query's rows is in the expression."""
    if _is_aggregate(node):
        return True
    return not isinstance(node, nodes.Query) and any(map(has_aggregate, node.children()))


def _free_columns(node: nodes.Node) -> Iterator[nodes.ColumnRef]:
    """Columns outside of aggregates and of queries inside."""
    if isinstance(node, nodes.ColumnRef):
        if not node.name.quoted or len(node.name.parts) > 1:
            yield node
    elif not _is_aggregate(node) and not isinstance(node, nodes.Query):
        for child in node.children():
            yield from _free_columns(child)
