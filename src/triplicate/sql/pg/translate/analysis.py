"""Queries and changes: which columns are in reach where, and the types of what they give. Pure.

Expressions get their types in the order in which PostgreSQL looks at the clauses, since the first place that needs a parameter tells
its type.
"""

from __future__ import annotations

from collections.abc import Mapping

from triplicate.errors import SqlError
from triplicate.sql.pg import types
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.translate.conversions import CAST_NAMES, type_of_name
from triplicate.sql.pg.translate.expressions import ExpressionTyping
from triplicate.sql.pg.translate.grouping import check_grouped
from triplicate.sql.pg.translate.scope import BLANKS_GO, Outputs, Parameters, Relation, Scope, Tables, column_modifiers, column_oid


class Analysis(ExpressionTyping):
    """Types of one statement.

    Args:
        tables: the columns of the tables that it names and that exist. keys: their primary keys.
        parameters: what the client says of them.
    """

    def __init__(self, tables: Tables, parameters: Parameters, keys: Mapping[str, tuple[str, ...]] | None = None) -> None:
        super().__init__(parameters)
        self._keys = None if keys is None else {name.lower(): key for name, key in keys.items()}
        self._tables = {name.lower(): columns for name, columns in tables.items()}

    def statement(self, statement: nodes.Statement, parent: Scope | None = None) -> Outputs | None:
        """The columns that a statement gives; None where they are not known."""
        match statement:
            case nodes.Query():
                return self.query(statement, parent)
            case nodes.Insert():
                return self._insert(statement, parent)
            case nodes.Update():
                return self._update(statement, parent)
            case nodes.Delete():
                return self._delete(statement, parent)

    # Relations.

    def _table_columns(self, name: nodes.Name) -> Outputs | None:
        columns = self._tables.get(name.last.lower())
        return None if columns is None else [(column, column_oid(declared)) for column, declared in columns]

    def _modifiers(self, name: nodes.Name) -> dict[str, tuple[int, ...]]:
        columns = self._tables.get(name.last.lower()) or ()
        return {column.lower(): found for column, declared in columns if (found := column_modifiers(declared))}

    def _relation(self, name: nodes.Name, alias: nodes.Name | None, scope: Scope) -> Relation:
        shown, table = (alias or name).last, name.last.lower()
        if len(name.parts) == 1:
            is_common, outputs = scope.common_named(name.last.lower())
            if is_common:
                return Relation(shown, outputs)
        return Relation(shown, self._table_columns(name), True, table=table)

    def _source(self, source: nodes.Source, scope: Scope) -> None:
        """Bring what stands in FROM into the scope."""
        for joined in source.joined:
            self._source(joined, scope)
        if source.table is not None:
            relation = self._relation(source.table, source.alias, scope)
        elif source.query is not None:
            relation = Relation(source.alias.last if source.alias else "", self.query(source.query, scope))
        elif source.call is not None:
            relation = self._called(source.call, source, scope)
        else:
            for condition in source.conditions:
                self.condition(condition, scope, "JOIN/ON")
            return
        if source.columns and relation.columns is not None:
            names = [column.last for column in source.columns]
            relation.columns = [(names[index] if index < len(names) else name, oid) for index, (name, oid) in enumerate(relation.columns)]
            relation.is_table = False
        scope.relations.append(relation)

    def _called(self, call: nodes.Call, source: nodes.Source, scope: Scope) -> Relation:
        name = source.alias.last if source.alias else call.name.last
        if call.name.last == "generate_series":
            for argument in call.arguments:
                self.expression(argument, scope)
            for argument in call.arguments:
                self.typing.resolve(argument, types.INT8)
            if any(argument.oid not in (types.INT2, types.INT4, types.INT8) for argument in call.arguments):
                raise SqlError("0A000", "generate_series() is there for integers only")
            return Relation(name, [(name, types.INT8)])
        for argument in call.arguments:
            self.expression(argument, scope)
        return Relation(name, None)

    # Queries.

    def query(self, query: nodes.Query, parent: Scope | None) -> Outputs | None:
        scope = self._common(query.common, parent)
        inner, outputs = self._body(query.body, scope)
        reach = Scope(parent=inner or scope)
        if not isinstance(query.body, nodes.Select):
            reach = Scope(parent=scope, aliases=dict(outputs or ()))
            if outputs is None:
                reach.relations.append(Relation("", None))
        for sort in query.order:
            self.expression(sort.expression, reach)
        if query.limits is not None:
            for limit in (query.limits.limit, query.limits.offset):
                if limit is not None:
                    self.expression(limit, Scope(parent=parent))
                    self.typing.resolve(limit, types.INT8)
        return outputs

    def _common(self, common: list[nodes.With], parent: Scope | None) -> Scope:
        scope = Scope(parent=parent)
        for table in common:
            name = table.name.last.lower()
            names = [column.last for column in table.columns]
            if table.is_recursive and isinstance(table.body, nodes.Query):
                # The first part tells the columns that the second may use.
                scope.common[name] = self._first_part(table.body, scope, names)
            outputs = self.statement(table.body, scope)
            scope.common[name] = _renamed(outputs, names)
        return scope

    def _first_part(self, query: nodes.Query, scope: Scope, names: list[str]) -> Outputs | None:
        if not isinstance(query.body, nodes.Compound):
            return None
        inner = self._common(query.common, scope)
        return _renamed(self._body(query.body.left, inner)[1], names)

    def _body(self, body: nodes.Body, scope: Scope) -> tuple[Scope | None, Outputs | None]:
        match body:
            case nodes.Select():
                return self._select(body, scope)
            case nodes.Values():
                return None, self._values(body, scope, None)
            case nodes.Query():
                return None, self.query(body, scope)
            case nodes.Compound():
                return None, self._compound(body, scope)

    def _compound(self, compound: nodes.Compound, scope: Scope) -> Outputs | None:
        left = self._body(compound.left, scope)[1]
        right = self._body(compound.right, scope)[1]
        if left is None or right is None:
            return left
        if len(left) != len(right):
            raise SqlError("42601", f"each {compound.operator.split()[0]} query must have the same number of columns")
        first, second = _items(compound.left), _items(compound.right)
        outputs: Outputs = []
        for index, ((name, oid), (_, other)) in enumerate(zip(left, right, strict=True)):
            if first is not None and second is not None and len(first) == len(left) == len(second):
                oid = self.union(first[index], second[index], oid, other)
            elif oid != other:
                oid = None
            outputs.append((name, oid))
        return outputs

    def _values(
        self, values: nodes.Values, scope: Scope, targets: list[tuple[str, int | None]] | None, table: Relation | None = None
    ) -> Outputs | None:
        """The columns of VALUES; in an INSERT the table's columns tell the types."""
        for row in values.rows:
            for index, item in enumerate(row.items):
                if isinstance(item, nodes.Literal) and item.kind == "default":
                    continue
                self.expression(item, scope)
                if targets is not None and index < len(targets):
                    name, oid = targets[index]
                    self._assign(item, oid, name, table)
        width = len(values.rows[0].items)
        outputs: Outputs = []
        for index in range(width):
            column = [row.items[index] for row in values.rows if index < len(row.items)]
            oid = self.typing.unify(column) if targets is None else column[0].oid
            outputs.append((f"column{index + 1}", oid))
        return outputs

    def _select(self, select: nodes.Select, outer: Scope) -> tuple[Scope, Outputs | None]:
        scope = Scope(parent=outer)
        if select.source is not None:
            self._source(select.source, scope)
        outputs = self.items(select.items, scope)
        if select.where is not None:
            self.condition(select.where, scope, "WHERE")
        reach = Scope(parent=scope, aliases={item.alias.last.lower(): item.expression.oid for item in select.items if item.alias})
        for expression in (*select.group, *select.distinct_on):
            self.expression(expression, reach)
        if select.having is not None:
            self.condition(select.having, reach, "HAVING")
        if select.group and self._keys is not None:
            check_grouped(select, scope.relations, self._keys)
        for window in select.windows:
            self.window(window, scope)
        return reach, outputs

    def items(self, items: list[nodes.Item], scope: Scope) -> Outputs | None:
        """The columns of a select list or of RETURNING; None where a star hides unknown ones."""
        outputs: Outputs | None = []
        for item in items:
            found = self._item(item, scope)
            outputs = None if outputs is None or found is None else [*outputs, *found]
        return outputs

    def _item(self, item: nodes.Item, scope: Scope) -> Outputs | None:
        if isinstance(item.expression, nodes.Star):
            return _star(item.expression, scope)
        self.expression(item.expression, scope)
        return [(item.alias.last if item.alias else result_name(item.expression), item.expression.oid)]

    # Changes.

    def _changed(self, table: nodes.Name, alias: nodes.Name | None, scope: Scope) -> Relation:
        relation = Relation((alias or table).last, self._table_columns(table), True, self._modifiers(table))
        scope.relations.append(relation)
        return relation

    def _insert(self, insert: nodes.Insert, parent: Scope | None) -> Outputs | None:
        scope = self._common(insert.common, parent)
        _check_once([column.last for column in insert.columns], "42701", "specified more than once")
        table = Relation((insert.alias or insert.table).last, self._table_columns(insert.table), True, self._modifiers(insert.table))
        targets: list[tuple[str, int | None]] | None = None
        if insert.columns:
            targets = [(column.last, table.oid(column.last)[1]) for column in insert.columns]
        elif table.columns is not None:
            targets = list(table.columns)
        if insert.query is not None:
            self._inserted(insert.query, scope, targets or [], table)
        inner = Scope(parent=scope, relations=[table])
        for conflict in insert.conflicts:
            self._conflict(conflict, Scope(parent=scope, relations=[table, Relation("excluded", table.columns)]), table, inner)
        return self.items(insert.returning, inner)

    def _assign(self, expression: nodes.Expression, oid: int | None, column: str, table: Relation | None) -> None:
        modifiers = table.modifiers.get(column.lower(), ()) if table is not None else ()
        if modifiers == BLANKS_GO:
            modifiers, expression.is_trimmed = (), not (isinstance(expression, nodes.Literal) and expression.kind in ("default", "null"))
        self.typing.assign(expression, oid, column, modifiers)

    def _inserted(self, query: nodes.Query, scope: Scope, targets: list[tuple[str, int | None]], table: Relation) -> None:
        if isinstance(query.body, nodes.Values) and not query.common:
            self._values(query.body, scope, targets, table)
            for sort in query.order:
                self.expression(sort.expression, scope)
            return
        self.query(query, scope)
        for select in _selects(query):
            if not any(isinstance(item.expression, nodes.Star) for item in select.items):
                for item, (name, oid) in zip(select.items, targets, strict=False):
                    self._assign(item.expression, oid, name, table)

    def _conflict(self, conflict: nodes.Conflict, scope: Scope, table: Relation, inner: Scope) -> None:
        for sort in conflict.target:
            self.expression(sort.expression, inner)
        if conflict.target_where is not None:
            self.condition(conflict.target_where, inner, "WHERE")
        # A bare name is the table's column, as PostgreSQL has it: `excluded` is looked at by its name only.
        self._assignments(conflict.assignments, scope, table)
        if conflict.where is not None:
            self.condition(conflict.where, scope, "WHERE")

    def _assignments(self, assignments: list[nodes.Assignment], scope: Scope, table: Relation) -> None:
        _check_once([column.last for one in assignments for column in one.columns], "42601", "assigned more than once")
        for assignment in assignments:
            self.expression(assignment.value, scope)
            values = assignment.value.items if isinstance(assignment.value, nodes.Row) else [assignment.value]
            for column, value in zip(assignment.columns, values, strict=False):
                self._assign(value, table.oid(column.last)[1], column.last, table)

    def _update(self, update: nodes.Update, parent: Scope | None) -> Outputs | None:
        scope = self._common(update.common, parent)
        inner = Scope(parent=scope)
        table = self._changed(update.table, update.alias, inner)
        if update.source is not None:
            self._source(update.source, inner)
        self._assignments(update.assignments, inner, table)
        if update.where is not None:
            self.condition(update.where, inner, "WHERE")
        return self.items(update.returning, inner)

    def _delete(self, delete: nodes.Delete, parent: Scope | None) -> Outputs | None:
        scope = self._common(delete.common, parent)
        inner = Scope(parent=scope)
        self._changed(delete.table, delete.alias, inner)
        if delete.using is not None:
            self._source(delete.using, inner)
        if delete.where is not None:
            self.condition(delete.where, inner, "WHERE")
        return self.items(delete.returning, inner)


def _check_once(columns: list[str], state: str, what: str) -> None:
    """Raises SqlError where a column is named twice."""
    seen: set[str] = set()
    for column in columns:
        if column.lower() in seen:
            raise SqlError(state, f'column "{column}" {what}')
        seen.add(column.lower())


def _renamed(outputs: Outputs | None, names: list[str]) -> Outputs | None:
    if outputs is None:
        return None
    return [(names[index] if index < len(names) else name, oid) for index, (name, oid) in enumerate(outputs)]


def _star(star: nodes.Star, scope: Scope) -> Outputs | None:
    relations = scope.relations
    if star.qualifier is not None:
        wanted = star.qualifier.last.lower()
        relations = [relation for relation in relations if relation.name.lower() == wanted]
    outputs: Outputs = []
    for relation in relations:
        if relation.columns is None:
            return None
        outputs += relation.columns
    return outputs or None


def _selects(query: nodes.Query) -> list[nodes.Select]:
    """The SELECTs whose rows the query gives."""
    found: list[nodes.Select] = []
    waiting: list[nodes.Body] = [query.body]
    while waiting:
        match waiting.pop():
            case nodes.Select() as select:
                found.append(select)
            case nodes.Query(body=body):
                waiting.append(body)
            case nodes.Compound(left=left, right=right):
                waiting += [left, right]
    return found


def _items(body: nodes.Body) -> list[nodes.Expression] | None:
    """The expressions that one part of a compound gives, where a list tells them."""
    match body:
        case nodes.Select():
            return [item.expression for item in body.items]
        case nodes.Compound():
            return _items(body.left)
        case nodes.Query():
            return _items(body.body)
    return None


def result_name(expression: nodes.Expression) -> str:
    """What PostgreSQL calls a column of the result that has no alias."""
    return _named(expression)[0]


def _named(expression: nodes.Expression) -> tuple[str, bool]:
    """The name, and whether it stays where a cast is around the expression."""
    match expression:
        case nodes.ColumnRef():
            return expression.name.last, True
        case nodes.Call():
            return _called_name(expression), True
        case nodes.Moment():
            return expression.name, True
        case nodes.Cast():
            inner, stays = _named(expression.operand)
            if stays or expression.type.dimensions:
                return inner, stays
            return CAST_NAMES.get(type_of_name(expression.type)[0], "?column?"), False
        case nodes.Collate():
            return _named(expression.operand)
        case nodes.AtTimeZone():
            return "timezone", True
        case nodes.Case():
            name, stays = _named(expression.otherwise) if expression.otherwise is not None else ("", False)
            return (name, True) if stays else ("case", False)
        case nodes.Exists():
            return "exists", True
        case nodes.Array():
            return "array", True
        case nodes.Row(is_explicit=True):
            return "row", True
        case nodes.Subquery():
            selects = _selects(expression.query)
            items = selects[-1].items if selects else []
            if len(items) == 1:
                return (items[0].alias.last, True) if items[0].alias is not None else _named(items[0].expression)
    return "?column?", False


def _called_name(call: nodes.Call) -> str:
    if call.name.last == "trim":
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(call.words[0] if call.words else "", "btrim")
    return call.name.last
