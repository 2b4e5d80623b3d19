"""Columns that stand beside an aggregate without being grouped: SQLite takes their values from any row, PostgreSQL refuses. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from triplicate.errors import SqlError
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.translate.calls import AGGREGATES
from triplicate.sql.pg.translate.scope import Relation


def check_grouping(select: nodes.Select, order: Sequence[nodes.Sort]) -> None:
    """Refuse what is wrong for sure: without GROUP BY, a column outside of the aggregates.

    With GROUP BY a column may depend on a grouped key: see `check_grouped`.

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
                raise _not_grouped(column)


def check_grouped(select: nodes.Select, relations: Sequence[Relation], keys: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse a column of the select list or HAVING that is neither grouped nor depends on a grouped primary key.

    Raises:
        SqlError: 42803, with the column.
    """
    aliases = {item.alias.last.lower(): item.expression for item in select.items if item.alias is not None}
    # A column goes before a name of the select list.
    aliases = {name: expression for name, expression in aliases.items() if not any(relation.oid(name)[0] for relation in relations)}
    groups = [_meant(expression, select.items, aliases) for expression in select.group]
    names = {group.name.last.lower() for group in groups if isinstance(group, nodes.ColumnRef)}
    free = [relation for relation in relations if relation.columns is not None and not _is_grouped(relation, names, keys)]
    if any(relation.columns is None for relation in relations):
        return
    expressions = [item.expression for item in select.items]
    for expression in (*expressions, *([select.having] if select.having is not None else [])):
        for column in _ungrouped(expression, groups):
            name, owner = column.name.last.lower(), column.name.parts[-2].lower() if len(column.name.parts) > 1 else None
            known = next((one for one in relations if (owner is None or one.name.lower() == owner) and one.oid(name)[0]), None)
            if name not in names and known in free and not (expression is select.having and name in aliases):
                raise _not_grouped(column)
        if isinstance(expression, nodes.Star):
            _check_star(expression, free, names)


def _check_star(star: nodes.Star, free: Sequence[Relation], names: set[str]) -> None:
    for relation in free:
        if star.qualifier is None or star.qualifier.last.lower() == relation.name.lower():
            missing = next((name for name, _ in relation.columns or () if name.lower() not in names), None)
            if missing is not None:
                raise SqlError(
                    "42803", f'column "{relation.name}.{missing}" must appear in the GROUP BY clause or be used in an aggregate function'
                )


def _meant(expression: nodes.Expression, items: Sequence[nodes.Item], aliases: Mapping[str, nodes.Expression]) -> nodes.Expression:
    """What a place in the select list, or an alias, stands for in GROUP BY."""
    if isinstance(expression, nodes.Literal) and expression.kind == "number" and expression.value.isdigit():
        place = int(expression.value)
        return items[place - 1].expression if 1 <= place <= len(items) else expression
    if isinstance(expression, nodes.ColumnRef) and len(expression.name.parts) == 1:
        return aliases.get(expression.name.last.lower(), expression)
    return expression


def _is_grouped(relation: Relation, names: set[str], keys: Mapping[str, tuple[str, ...]]) -> bool:
    key = keys.get(relation.table, ()) if relation.is_table else ()
    return bool(key) and all(column.lower() in names for column in key)


def _ungrouped(node: nodes.Node, groups: Sequence[nodes.Expression]) -> Iterator[nodes.ColumnRef]:
    if any(_same(node, group) for group in groups) or _is_aggregate(node) or isinstance(node, nodes.Query):
        return
    if isinstance(node, nodes.ColumnRef) and not node.session_name:
        yield node
    for child in node.children():
        yield from _ungrouped(child, groups)


def _same(left: nodes.Node, right: nodes.Node) -> bool:
    """Whether two expressions are written alike."""
    if type(left) is not type(right):
        return False
    facts = [
        [getattr(one, name, None) for name in ("operator", "kind", "value", "number", "test", "negated", "words", "is_distinct")]
        for one in (left, right)
    ]
    if facts[0] != facts[1] or _last_name(left) != _last_name(right):
        return False
    ours, theirs = list(left.children()), list(right.children())
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _last_name(node: nodes.Node) -> str:
    name = node.type.name if isinstance(node, nodes.Cast) else getattr(node, "name", None)
    return name.last.lower() if isinstance(name, nodes.Name) else str(name)


def _not_grouped(column: nodes.ColumnRef) -> SqlError:
    return SqlError(
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
        if not node.session_name and (not node.name.quoted or len(node.name.parts) > 1):
            yield node
    elif not _is_aggregate(node) and not isinstance(node, nodes.Query):
        for child in node.children():
            yield from _free_columns(child)
