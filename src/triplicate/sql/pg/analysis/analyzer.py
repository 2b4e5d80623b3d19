"""Parse analysis of queries and changes: the columns in scope of each expression, and the types of the results. Pure.

Expressions are analysed in PostgreSQL's order of the clauses, because the first use of a parameter determines its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from triplicate.errors import SqlError
from triplicate.sql.pg.analysis.from_clause import SourceTyping, expanded, renamed, visible_of
from triplicate.sql.pg.analysis.grouping import check_grouped
from triplicate.sql.pg.analysis.name_scope import BLANKS_GO, Outputs, Parameters, Relation, Scope, Tables, Visible
from triplicate.sql.pg.analysis.scales import common_scale
from triplicate.sql.pg.analysis.type_resolution import cannot_unite, check_ordered, common_type
from triplicate.sql.pg.syntax import dml_nodes, nodes
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import CAST_NAMES, SHOWN, type_of_name

_COLUMNS_MAX = 2_000
"""Upper bound on the columns of a query, as in SQLite."""


@dataclass(frozen=True, slots=True)
class _OrderByScope:
    """The scopes of ORDER BY: `named`, with the names of the select list, is for a bare name, and `plain` for other expressions."""

    named: Scope
    plain: Scope


class Analyzer(SourceTyping):
    """Determines the types of one statement.

    Args:
        tables: columns of the existing tables that the statement names. keys: their primary keys; None if ungrouped columns are not
            checked. fixes_stars: whether a star is rendered as its columns, so that it stays as it is when a table gets another column.
        parameters: the types that the client has declared. The analysis adds the types that it determines.
    """

    def __init__(
        self, tables: Tables, parameters: Parameters, keys: Mapping[str, tuple[str, ...]] | None = None, *, fixes_stars: bool = False
    ) -> None:
        super().__init__(tables, parameters)
        self._fixes_stars = fixes_stars
        self._keys = None if keys is None else {name.lower(): key for name, key in keys.items()}

    def statement(self, statement: nodes.StatementNode, parent: Scope | None = None) -> Outputs | None:
        """The columns of a statement's result; None if they are unknown. Raises SqlError for an error that PostgreSQL also reports."""
        match statement:
            case nodes.QueryExpression():
                return self.query(statement, parent)
            case dml_nodes.InsertStatement():
                return self._insert(statement, parent)
            case dml_nodes.UpdateStatement():
                return self._update(statement, parent)
            case dml_nodes.DeleteStatement():
                return self._delete(statement, parent)
        raise TypeError(f"{type(statement).__name__} is not a statement that can be analyzed")

    def scales(self, statement: dml_nodes.DmlStatement, width: int) -> tuple[int | None, ...]:
        """The scale of each of the `width` columns of a statement's result; None for one that is not numeric or has several scales."""
        rows = (
            rows_of(statement.body) if isinstance(statement, nodes.QueryExpression) else [[item.expression for item in statement.returning]]
        )
        expanded_rows = [expanded_row(row) for row in rows]
        if any(len(row) != width for row in expanded_rows):
            return ()
        return tuple([common_scale(column) for column in zip(*expanded_rows, strict=True)])

    # Queries.

    def query(self, query: nodes.QueryExpression, parent: Scope | None) -> Outputs | None:
        scope = self._common(query.common, parent)
        inner, outputs = self._body(query.body, scope)
        _check_positions(query.order, outputs, "ORDER")
        for sort in query.order:
            if inner is not None:
                self.expression(sort.expression, inner.named if is_bare(sort.expression) else inner.plain)
                _check_numeric_position(sort.expression, query.body, inner.plain, outputs)
            else:
                self._order_of_rows(sort.expression, query.body, outputs, scope)
            position = sort.expression.value if isinstance(sort.expression, nodes.Literal) else ""
            check_ordered(outputs[int(position) - 1][1] if outputs and position.isdigit() else sort.expression.oid)
        if isinstance(query.body, nodes.Select) and inner is not None:
            check_grouped(query.body, query.order, inner.plain.relations, self._keys)
        if query.limits is not None:
            for limit in (query.limits.limit, query.limits.offset):
                if limit is not None:
                    self.expression(limit, Scope(parent=parent))
                    self.typing.resolve(limit, types.INT8)
        return outputs

    def _order_of_rows(self, expression: nodes.Expression, body: nodes.Body, outputs: Outputs | None, scope: Scope) -> None:
        """Analyse ORDER BY of VALUES or of a set operation, where only the result's columns are in scope."""
        reach = Scope(parent=scope, aliases={name.lower(): oid for name, oid in outputs or ()})
        if outputs is None:
            reach.relations.append(Relation("", None))
        elif isinstance(body, nodes.Compound) and not isinstance(expression, nodes.Literal):
            if not is_bare(expression):
                raise SqlError(
                    "0A000",
                    "invalid UNION/INTERSECT/EXCEPT ORDER BY clause: only result column names can be used, not expressions",
                    hint="Select the expression in every part, or order a query around them: SELECT … FROM (… UNION …) u ORDER BY ….",
                    position=expression.start + 1,
                )
            name = expression.name.last if isinstance(expression, nodes.ColumnRef) else ""
            if name.lower() not in reach.aliases:
                raise SqlError("42703", f'column "{name}" does not exist', position=expression.start + 1)
        self.expression(expression, reach)
        if outputs is not None and isinstance(body, nodes.Compound):
            self._check_sortable(expression, body, outputs, scope)

    def _check_sortable(self, sort: nodes.Expression, body: nodes.Compound, outputs: Outputs, scope: Scope) -> None:
        """Refuse to sort a set operation by a numeric of a star that may have many digits, because SQLite would sort it as text."""
        names = [name.lower() for name, _ in outputs]
        if isinstance(sort, nodes.Literal):
            number = int(sort.value) if sort.value.isdigit() else 0
        else:
            number = names.index(sort.name.last.lower()) + 1 if isinstance(sort, nodes.ColumnRef) else 0
        if not 1 <= number <= len(outputs) or outputs[number - 1][1] not in (types.NUMERIC, None):
            return
        for select in selects_of(body):
            starred = [item for item in select.items if isinstance(item.expression, nodes.Star)]
            if starred and (len(starred) < len(select.items) or not self._is_stored(select.source, scope)):
                raise SqlError(
                    "0A000",
                    "ORDER BY a numeric column of * is not available in UNION, INTERSECT and EXCEPT",
                    hint="Name the columns in each part.",
                    position=sort.start + 1,
                )

    def _is_stored(self, source: nodes.FromItem | None, scope: Scope) -> bool:
        """Whether FROM has only tables, whose numerics have few digits."""
        if source is None:
            return True
        if source.joined:
            return all(self._is_stored(joined, scope) for joined in source.joined)
        name = source.table.last.lower() if source.table is not None else ""
        return name in self._tables and not self._computed[name] and not scope.common_named(name)[0]

    def _common(self, common: list[nodes.With], parent: Scope | None) -> Scope:
        names = [table.name.last.lower() for table in common]
        twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
        if twice is not None:
            raise SqlError("42712", f'WITH query name "{twice}" specified more than once')
        scope = Scope(parent=parent, declared=frozenset(names))
        if any(table.is_recursive for table in common):
            # With RECURSIVE each query may use all others. The columns of later ones are not known yet.
            scope.common = dict.fromkeys(names)
        for table in common:
            name = table.name.last.lower()
            if not isinstance(table.body, nodes.QueryExpression):
                raise SqlError(
                    "0A000",
                    "INSERT, UPDATE and DELETE in WITH are not available",
                    hint="Run them as statements of their own, in one transaction.",
                    position=table.body.start + 1,
                )
            if table.is_recursive:
                # The first part defines the columns that the second part may use.
                scope.common[name] = self._first_part(table.body, scope, table.columns)
            outputs = self.statement(table.body, scope)
            if outputs is not None:
                outputs = renamed(outputs, table.columns, f'WITH query "{table.name.last}"')
                table.names_left = tuple(name for name, _ in outputs[len(table.columns) :]) if table.columns else ()
            elif table.columns:
                outputs = None
            scope.common[name] = outputs
        return scope

    def _first_part(self, query: nodes.QueryExpression, scope: Scope, names: tuple[nodes.Name, ...]) -> Outputs | None:
        if not isinstance(query.body, nodes.Compound):
            return None
        inner = self._common(query.common, scope)
        outputs = self._body(query.body.left, inner)[1]
        return None if outputs is None else renamed(outputs, names, "WITH query")

    def _body(self, body: nodes.Body, scope: Scope) -> tuple[_OrderByScope | None, Outputs | None]:
        match body:
            case nodes.Select():
                return self._select(body, scope)
            case nodes.Values():
                return None, self._values(body, scope, None)
            case nodes.QueryExpression():
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
        rows = rows_of(compound)
        outputs: Outputs = []
        for index, ((name, oid), (_, other)) in enumerate(zip(left, right, strict=True)):
            if all(len(row) == len(left) for row in rows):
                oid = self.union([row[index] for row in rows], oid, other)
            elif oid != other:
                oid = common_type((oid, other))
            if other is not None and left[index][1] is not None and cannot_unite(left[index][1], other):
                word = compound.operator.split()[0]
                shown = [SHOWN.get(side or 0, "?") for side in (left[index][1], other)]
                raise SqlError("42804", f"{word} types {shown[0]} and {shown[1]} cannot be matched", hint="Cast one side: value::type.")
            outputs.append((name, oid))
        return outputs

    def _values(
        self, values: nodes.Values, scope: Scope, targets: list[tuple[str, int | None]] | None, table: Relation | None = None
    ) -> Outputs | None:
        """The columns of VALUES. In an INSERT the table's columns determine the types."""
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
            oid = self.typing.unify(column, is_result=True) if targets is None else column[0].oid
            outputs.append((f"column{index + 1}", oid))
        return outputs

    def _select(self, select: nodes.Select, outer: Scope) -> tuple[_OrderByScope, Outputs | None]:
        names = frozenset(item.alias.last.lower() for item in select.items if item.alias is not None)
        scope = Scope(parent=outer, hidden=names, unnamed=_unnamed(select.items))
        if select.source is not None:
            self.sources(select.source, scope)
        inner = Scope(outer, scope.relations, visible=scope.visible, has_merged=scope.has_merged)
        outputs = self.items(select.items, inner)
        if select.where is not None:
            self.condition(select.where, scope, "WHERE")
        named = Scope(scope, aliases={item.alias.last.lower(): item.expression.oid for item in select.items if item.alias})
        _check_positions([*select.group], outputs, "GROUP")
        for expression in select.group:
            # A bare name is a column of FROM, or else a name of the select list.
            is_column = is_bare(expression) and isinstance(expression, nodes.ColumnRef) and scope.has(expression.name.last)
            self.expression(expression, named if is_bare(expression) and not is_column else scope)
        for expression in select.distinct_on:
            self.expression(expression, named if is_bare(expression) else scope)
        if select.having is not None:
            self.condition(select.having, scope, "HAVING")
        for window in select.windows:
            self.window(window, inner)
        return _OrderByScope(named, scope), outputs

    def items(self, items: list[nodes.SelectItem], scope: Scope) -> Outputs | None:
        """The columns of a select list or of RETURNING; None if a star expands to unknown columns.

        Raises:
            SqlError: 54011, they are too many. Stars within each other would double them with each level.
        """
        outputs, is_known = Outputs(), True
        for count, item in enumerate(items, start=1):
            columns = self._item(item, scope)
            is_known = is_known and columns is not None
            outputs += columns or ()
            if max(count, len(outputs)) > _COLUMNS_MAX:
                raise SqlError("54011", f"a list of results can have at most {_COLUMNS_MAX} entries")
        return outputs if is_known else None

    def _item(self, item: nodes.SelectItem, scope: Scope) -> Outputs | None:
        if isinstance(item.expression, nodes.Star):
            return self._star(item.expression, scope)
        self.expression(item.expression, scope)
        return [(item.alias.last if item.alias else result_name(item.expression), item.expression.oid)]

    def _star(self, star: nodes.Star, scope: Scope) -> Outputs | None:
        visible = _starred(star, scope)
        if visible is None:
            return None
        is_named = all(column.text for column in visible)
        if (scope.has_merged and star.qualifier is None) or (self._fixes_stars and is_named):
            star.expansion = expanded(visible)
        columns = [nodes.ColumnRef(star.start, star.end, nodes.Name(star.start, star.end, (column.name,), (), True)) for column in visible]
        for node, column in zip(columns, visible, strict=True):
            node.oid = column.oid
            self.refer(node, column.oid, column.relation)
        star.columns = tuple(columns)
        return [(column.name, column.oid) for column in visible] or None

    # Changes.

    def _changed(self, table: nodes.Name, alias: nodes.Name | None, scope: Scope) -> Relation:
        relation = Relation((alias or table).last, self.table_columns(table), True, self.modifiers(table))
        scope.relations.append(relation)
        return relation

    def _insert(self, insert: dml_nodes.InsertStatement, parent: Scope | None) -> Outputs | None:
        scope = self._common(insert.common, parent)
        _check_once([column.last for column in insert.columns], "42701", "specified more than once")
        table = Relation((insert.alias or insert.table).last, self.table_columns(insert.table), True, self.modifiers(insert.table))
        targets: list[tuple[str, int | None]] | None = None
        missing = next((column for column in insert.columns if table.columns is not None and not table.oid(column.last)[0]), None)
        if missing is not None:
            raise SqlError("42703", f'column "{missing.last}" of relation "{insert.table.last}" does not exist', position=missing.start + 1)
        if insert.columns:
            targets = [(column.last, table.oid(column.last)[1]) for column in insert.columns]
        elif table.columns is not None:
            targets = list(table.columns)
        if insert.query is not None:
            width = self._inserted(insert.query, scope, targets or [], table)
            if not insert.columns and targets is not None and 0 < width < len(targets):
                # Omitted columns get their defaults. SQLite requires a value for each column, or a list of columns.
                insert.first_columns = tuple(name for name, _ in targets[:width])
        refuse_own_reads(insert.returning, insert.table, "RETURNING")
        inner = Scope(parent=scope, relations=[table])
        is_one_row = insert.query is not None and isinstance(insert.query.body, nodes.Values) and len(insert.query.body.rows) == 1
        for conflict in insert.conflicts:
            if not is_one_row:
                refuse_own_reads((*conflict.assignments, conflict.where), insert.table, "ON CONFLICT DO UPDATE of several rows")
            self._conflict(conflict, Scope(parent=scope, relations=[table, Relation("excluded", table.columns)]), table, inner)
        return self.items(insert.returning, inner)

    def _assign(self, expression: nodes.Expression, oid: int | None, column: str, table: Relation | None) -> None:
        modifiers = table.modifiers.get(column.lower(), ()) if table is not None else ()
        if modifiers == BLANKS_GO:
            modifiers, expression.is_trimmed = (), not (isinstance(expression, nodes.Literal) and expression.kind in ("default", "null"))
        self.typing.assign(expression, oid, column, modifiers)

    def _inserted(self, query: nodes.QueryExpression, scope: Scope, targets: list[tuple[str, int | None]], table: Relation) -> int:
        """The number of columns of the inserted rows; 0 if it is unknown."""
        if isinstance(query.body, nodes.Values) and not query.common:
            outputs = self._values(query.body, scope, targets, table)
            for sort in query.order:
                self.expression(sort.expression, scope)
            return len(outputs or ())
        outputs = self.query(query, scope)
        for select in selects_of(query):
            if not any(isinstance(item.expression, nodes.Star) for item in select.items):
                for item, (name, oid) in zip(select.items, targets, strict=False):
                    self._assign(item.expression, oid, name, table)
        return len(outputs or ())

    def _conflict(self, conflict: dml_nodes.Conflict, scope: Scope, table: Relation, inner: Scope) -> None:
        for sort in conflict.target:
            self.expression(sort.expression, inner)
        if conflict.target_where is not None:
            self.condition(conflict.target_where, inner, "WHERE")
        # As in PostgreSQL, a bare name is the table's column; a column of `excluded` needs the qualifier.
        self._assignments(conflict.assignments, scope, table)
        if conflict.where is not None:
            self.condition(conflict.where, scope, "WHERE")

    def _assignments(self, assignments: list[dml_nodes.Assignment], scope: Scope, table: Relation) -> None:
        _check_once([column.last for assignment in assignments for column in assignment.columns], "42601", "assigned more than once")
        for assignment in assignments:
            self.expression(assignment.value, scope)
            values = assignment.value.items if isinstance(assignment.value, nodes.RowConstructor) else [assignment.value]
            width = assignment.value.width if isinstance(assignment.value, nodes.Subquery) else len(values)
            if width is not None and width != len(assignment.columns):
                if len(values) == 1 and not isinstance(assignment.value, nodes.RowConstructor | nodes.Subquery):
                    raise SqlError(
                        "0A000",
                        "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
                        position=assignment.value.start + 1,
                    )
                raise SqlError("42601", "number of columns does not match number of values", position=assignment.value.start + 1)
            rows = [values]
            if isinstance(assignment.value, nodes.Subquery) and len(assignment.columns) > 1:
                rows = [expanded_row(row) for row in rows_of(assignment.value.query.body)]
            for row in rows:
                for column, value in zip(assignment.columns, row, strict=False):
                    self._assign(value, table.oid(column.last)[1], column.last, table)

    def _update(self, update: dml_nodes.UpdateStatement, parent: Scope | None) -> Outputs | None:
        scope = self._common(update.common, parent)
        inner = Scope(parent=scope)
        table = self._changed(update.table, update.alias, inner)
        if update.source is not None:
            self.sources(update.source, inner)
        self._assignments(update.assignments, inner, table)
        if update.where is not None:
            self.condition(update.where, inner, "WHERE")
        refuse_own_reads(update.returning, update.table, "RETURNING")
        return self.items(update.returning, inner)

    def _delete(self, delete: dml_nodes.DeleteStatement, parent: Scope | None) -> Outputs | None:
        scope = self._common(delete.common, parent)
        inner = Scope(parent=scope)
        self._changed(delete.table, delete.alias, inner)
        if delete.using is not None:
            self.sources(delete.using, inner)
        if delete.where is not None:
            self.condition(delete.where, inner, "WHERE")
        refuse_own_reads(delete.returning, delete.table, "RETURNING")
        return self.items(delete.returning, inner)


def refuse_own_reads(parts: Sequence[nodes.SyntaxNode | None], table: nodes.Name, clause: str) -> None:
    """Refuse a query that reads the table being changed. In SQLite it would read the rows changed so far, in PostgreSQL the old rows.

    Raises:
        SqlError: 0A000 for a query that reads the changed table.
    """
    for part in parts:
        read = None if part is None else next(reads(part, table), None)
        if read is not None:
            raise SqlError(
                "0A000",
                f"a query in {clause} that reads the changed table is not available: it would read rows that are changed already",
                hint="Read before or after the change, by another statement in one transaction.",
                position=read.start + 1,
            )


def reads(node: nodes.SyntaxNode, table: nodes.Name) -> Iterator[nodes.FromItem]:
    """The items of FROM, in a node and below, that read a table."""
    if isinstance(node, nodes.FromItem) and node.table is not None and node.table.last.lower() == table.last.lower():
        yield node
    for child in node.children():
        yield from reads(child, table)


def _check_once(columns: list[str], sqlstate: str, problem: str) -> None:
    """Raises SqlError if a column is named twice."""
    seen: set[str] = set()
    for column in columns:
        if column.lower() in seen:
            raise SqlError(sqlstate, f'column "{column}" {problem}')
        seen.add(column.lower())


def _check_numeric_position(sort: nodes.Expression, body: nodes.Body, inner: Scope, outputs: Outputs | None) -> None:
    """Refuse a position in ORDER BY for a column of a star that may have numerics of many digits. Only the name can be sorted then."""
    if not (isinstance(sort, nodes.Literal) and sort.kind == "number" and sort.value.isdigit() and isinstance(body, nodes.Select)):
        return
    if outputs is None or not any(isinstance(item.expression, nodes.Star) for item in body.items):
        return
    stored = all(relation.is_table and not relation.computed for relation in inner.relations)
    if not stored and 1 <= int(sort.value) <= len(outputs) and outputs[int(sort.value) - 1][1] == types.NUMERIC:
        raise SqlError("0A000", "ORDER BY the position of a numeric column of * is not available", hint="Name the column in ORDER BY.")


def _starred(star: nodes.Star, scope: Scope) -> list[Visible] | None:
    """The columns that a star stands for; None if they are unknown."""
    if star.qualifier is None and scope.visible is not None:
        return scope.visible
    if star.qualifier is None and scope.has_merged:
        raise SqlError("0A000", "* over USING or NATURAL requires known columns on both sides", hint="Name the columns.")
    relations = scope.relations
    if star.qualifier is not None:
        qualifier = star.qualifier.last.lower()
        relations = [relation for relation in relations if relation.name.lower() == qualifier]
    return visible_of(relations)


def expanded_row(row: list[nodes.Expression]) -> list[nodes.Expression]:
    """A row with the columns that its stars stand for; empty if they are unknown."""
    expanded_items: list[nodes.Expression] = []
    for item in row:
        if isinstance(item, nodes.Star) and item.columns is None:
            return []
        expanded_items += (item.columns or ()) if isinstance(item, nodes.Star) else [item]
    return expanded_items


def is_bare(expression: nodes.Expression) -> bool:
    """Whether it may be a name of the select list, or a position in it."""
    return isinstance(expression, nodes.Literal) or (isinstance(expression, nodes.ColumnRef) and len(expression.name.parts) == 1)


def _check_positions(expressions: Sequence[nodes.SyntaxNode], outputs: Outputs | None, word: str) -> None:
    """Check constants in ORDER BY or GROUP BY, which are positions.

    Raises:
        SqlError: 42P10 for a position out of range, 42601 for a constant that SQLite would ignore.
    """
    for node in expressions:
        expression = node.expression if isinstance(node, nodes.Sort) else node
        sign = 1
        if isinstance(expression, nodes.Unary) and expression.operator == "-":
            expression, sign = expression.operand, -1
        if not isinstance(expression, nodes.Literal):
            continue
        if expression.kind != "number" or not expression.value.isdigit():
            raise SqlError("42601", f"non-integer constant in {word} BY", position=expression.start + 1)
        position = sign * int(expression.value)
        if outputs is not None and not 1 <= position <= len(outputs):
            raise SqlError("42P10", f"{word} BY position {position} is not in select list", position=expression.start + 1)


def selects_of(body: nodes.Body) -> list[nodes.Select]:
    """The SELECTs that make up a query's result, in the order of the text."""
    match body:
        case nodes.Select():
            return [body]
        case nodes.QueryExpression(body=inner):
            return selects_of(inner)
        case nodes.Compound(left=left, right=right):
            return [*selects_of(left), *selects_of(right)]
    return []


def rows_of(body: nodes.Body) -> list[list[nodes.Expression]]:
    """The select list or row of each part of a query."""
    match body:
        case nodes.Select():
            return [[item.expression for item in body.items]]
        case nodes.Values():
            return [row.items for row in body.rows]
        case nodes.Compound():
            return [*rows_of(body.left), *rows_of(body.right)]
        case nodes.QueryExpression():
            return rows_of(body.body)


def _unnamed(items: Sequence[nodes.SelectItem]) -> Mapping[str, Sequence[nodes.SelectItem]]:
    found: dict[str, list[nodes.SelectItem]] = {}
    for item in items:
        if item.alias is None and not isinstance(item.expression, (nodes.ColumnRef, nodes.Star)):
            found.setdefault(result_name(item.expression).lower(), []).append(item)
    return found


def result_name(expression: nodes.Expression) -> str:
    """PostgreSQL's name for a result column without an alias."""
    return _named(expression)[0]


def _named(expression: nodes.Expression) -> tuple[str, bool]:
    """(name, whether it stays if the expression is the operand of a cast)."""
    match expression:
        case nodes.ColumnRef():
            return expression.name.last, True
        case nodes.Call():
            return _called_name(expression), True
        case nodes.CurrentTime():
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
        case nodes.ArrayConstructor():
            return "array", True
        case nodes.RowConstructor(is_explicit=True):
            return "row", True
        case nodes.Subquery():
            selects = selects_of(expression.query)
            items = selects[-1].items if selects else []
            if len(items) == 1:
                return (items[0].alias.last, True) if items[0].alias is not None else _named(items[0].expression)
    return "?column?", False


def _called_name(call: nodes.Call) -> str:
    if call.name.last == "trim":
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(call.words[0] if call.words else "", "btrim")
    return call.name.last
