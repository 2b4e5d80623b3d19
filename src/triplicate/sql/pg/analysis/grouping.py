"""Checks for ungrouped columns in grouping queries. PostgreSQL refuses them, SQLite returns values of an arbitrary row. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from triplicate.errors import SqlError
from triplicate.sql.pg.analysis.calls import AGGREGATES
from triplicate.sql.pg.analysis.name_scope import Relation
from triplicate.sql.pg.syntax import nodes


def check_grouped(
    select: nodes.Select, order: Sequence[nodes.Sort], relations: Sequence[Relation], keys: Mapping[str, tuple[str, ...]] | None
) -> None:
    """Refuse a column in the select list, HAVING or ORDER BY that is neither grouped nor depends on a grouped key.

    Args:
        relations: of the query's FROM. keys: primary keys by table; None if they are unknown, and GROUP BY is not checked then.

    Raises:
        SqlError: 42803, with the column; 42P10 for SELECT DISTINCT that is ordered by an expression outside its select list.
    """
    if select.is_distinct and not select.distinct_on:
        _check_distinct(select, order, relations)
    expressions = [item.expression for item in select.items]
    if select.having is not None:
        expressions.append(select.having)
    sorts = [sort.expression for sort in order]
    if not (select.group or select.having is not None or any(_aggregates(expression, relations) for expression in (*expressions, *sorts))):
        return
    if select.group and (keys is None or any(relation.columns is None for relation in relations)):
        return
    check = _Check(select, relations, keys or {})
    for expression in expressions:
        if isinstance(expression, nodes.Star):
            check.star(expression)
        else:
            check.columns(expression)
    for expression in sorts:
        if not check.is_of_list(expression):
            check.columns(expression)


class _Check:
    """Checks which columns of a grouping query occur outside of its aggregates."""

    def __init__(self, select: nodes.Select, relations: Sequence[Relation], keys: Mapping[str, tuple[str, ...]]) -> None:
        self._relations = relations
        self._aliases = {item.alias.last.lower(): item.expression for item in select.items if item.alias is not None}
        self._groups = [self._resolve(expression, select.items) for expression in select.group]
        names: dict[int, set[str]] = {}
        for group in self._groups:
            if isinstance(group, nodes.ColumnRef) and group.relation is not None:
                names.setdefault(id(group.relation), set()).add(group.name.last.lower())
        self._names = names
        self._whole = {id(relation) for relation in relations if _is_grouped(relation, names.get(id(relation), set()), keys)}

    def _resolve(self, expression: nodes.Expression, items: Sequence[nodes.SelectItem]) -> nodes.Expression:
        """The expression that a position or a name of the select list refers to in GROUP BY."""
        if isinstance(expression, nodes.Literal) and expression.kind == "number" and expression.value.isdigit():
            position = int(expression.value)
            return items[position - 1].expression if 1 <= position <= len(items) else expression
        return self._aliases[_name(expression)] if self.is_of_list(expression) and _name(expression) in self._aliases else expression

    def is_of_list(self, expression: nodes.Expression) -> bool:
        """Whether it is a position in the select list, or a name of the select list and not of a column."""
        if isinstance(expression, nodes.Literal):
            return True
        return isinstance(expression, nodes.ColumnRef) and expression.relation is None and _name(expression) in self._aliases

    def star(self, star: nodes.Star) -> None:
        """Check every column to which a star expands."""
        for relation in self._relations:
            if star.qualifier is None or star.qualifier.last.lower() == relation.name.lower():
                for name, _ in relation.columns or ():
                    if not self._is_free(relation, name.lower()):
                        raise _not_grouped(f"{relation.name}.{name}", star)

    def _is_free(self, relation: Relation, name: str) -> bool:
        return id(relation) in self._whole or name in self._names.get(id(relation), ())

    def columns(self, node: nodes.SyntaxNode, *, is_nested: bool = False) -> None:
        """Check every column outside the query's own aggregates, including those in subqueries."""
        if any(same_expression(node, group) for group in self._groups) or _is_aggregate_of(node, self._relations, is_nested=is_nested):
            return
        if isinstance(node, nodes.ColumnRef) and not node.session_name:
            relation = node.relation
            if isinstance(relation, Relation):
                is_own = any(relation is other for other in self._relations)
                if is_own and not self._is_free(relation, node.name.last.lower()):
                    raise _not_grouped(".".join(node.name.parts), node)
            elif not is_nested:
                raise _not_grouped(".".join(node.name.parts), node)
        for child in node.children():
            self.columns(child, is_nested=is_nested or isinstance(node, nodes.QueryExpression))


def _check_distinct(select: nodes.Select, order: Sequence[nodes.Sort], relations: Sequence[Relation]) -> None:
    aliases = {item.alias.last.lower() for item in select.items if item.alias is not None}
    stars = [item.expression for item in select.items if isinstance(item.expression, nodes.Star)]
    for sort in order:
        expression = sort.expression
        if isinstance(expression, nodes.Literal) or any(same_expression(expression, item.expression) for item in select.items):
            continue
        if isinstance(expression, nodes.ColumnRef):
            relation = expression.relation
            if relation is None and (_name(expression) in aliases or any(one.columns is None for one in relations)):
                continue
            shown = [relation is None or star.qualifier is None or star.qualifier.last.lower() == _owner(relation) for star in stars]
            if any(shown):
                continue
        raise SqlError("42P10", "for SELECT DISTINCT, ORDER BY expressions must appear in select list", position=expression.start + 1)


def _owner(relation: object) -> str:
    return relation.name.lower() if isinstance(relation, Relation) else ""


def _name(expression: nodes.Expression) -> str:
    """The name if the expression is a bare name, else an empty text."""
    if isinstance(expression, nodes.ColumnRef) and len(expression.name.parts) == 1:
        return expression.name.last.lower()
    return ""


def _is_grouped(relation: Relation, names: set[str], keys: Mapping[str, tuple[str, ...]]) -> bool:
    key = keys.get(relation.table, ()) if relation.is_table else ()
    return bool(key) and all(column.lower() in names for column in key)


def same_expression(left: nodes.SyntaxNode, right: nodes.SyntaxNode) -> bool:
    """Whether two expressions have equal trees."""
    if type(left) is not type(right):
        return False
    if isinstance(left, nodes.ColumnRef) and isinstance(right, nodes.ColumnRef) and left.relation is not right.relation:
        return False
    facts = [
        [getattr(one, name, None) for name in ("operator", "kind", "value", "number", "test", "negated", "words", "is_distinct")]
        for one in (left, right)
    ]
    if facts[0] != facts[1] or _last_name(left) != _last_name(right):
        return False
    left_children, right_children = list(left.children()), list(right.children())
    return len(left_children) == len(right_children) and all(map(same_expression, left_children, right_children))


def _last_name(node: nodes.SyntaxNode) -> str:
    name = node.type.name if isinstance(node, nodes.Cast) else getattr(node, "name", None)
    return name.last.lower() if isinstance(name, nodes.Name) else str(name)


def _not_grouped(column: str, node: nodes.SyntaxNode) -> SqlError:
    return SqlError(
        "42803",
        f'column "{column}" must appear in the GROUP BY clause or be used in an aggregate function',
        position=node.start + 1,
    )


def _is_aggregate(node: nodes.SyntaxNode) -> bool:
    if not isinstance(node, nodes.Call) or node.is_window or node.name.last not in AGGREGATES:
        return False
    return node.name.last not in ("min", "max") or len(node.arguments) == 1


def _is_aggregate_of(node: nodes.SyntaxNode, relations: Sequence[Relation], *, is_nested: bool) -> bool:
    """Whether a call aggregates the rows of these relations: an aggregate belongs to the innermost query whose columns it uses.

    Args:
        is_nested: whether the call is in a subquery.
    """
    if not _is_aggregate(node):
        return False
    used = [column.relation for column in _columns(node)]
    if not used or any(relation is None for relation in used):
        return not is_nested
    is_own = [any(relation is other for other in relations) for relation in used]
    return all(is_own) if is_nested else any(is_own)


def _columns(node: nodes.SyntaxNode) -> Iterator[nodes.ColumnRef]:
    if isinstance(node, nodes.ColumnRef):
        yield node
    for child in node.children():
        yield from _columns(child)


def _aggregates(node: nodes.SyntaxNode, relations: Sequence[Relation], *, is_nested: bool = False) -> bool:
    """Whether the expression contains an aggregate over rows of these relations."""
    if _is_aggregate_of(node, relations, is_nested=is_nested):
        return True
    is_nested = is_nested or isinstance(node, nodes.QueryExpression)
    return any(_aggregates(child, relations, is_nested=is_nested) for child in node.children())


def has_aggregate(node: nodes.SyntaxNode) -> bool:
    """Whether the expression contains an aggregate outside its subqueries."""
    if _is_aggregate(node):
        return True
    return not isinstance(node, nodes.QueryExpression) and any(map(has_aggregate, node.children()))
