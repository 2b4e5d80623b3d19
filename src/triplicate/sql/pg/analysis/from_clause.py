"""FROM: the relations and columns that it brings into scope, and the order in which a star expands to them. Pure.

PostgreSQL puts the merged columns of USING or NATURAL first; SQLite leaves them in the left table's order. A star over such a join is
therefore expanded into its columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import quote
from triplicate.sql.core.view_columns import split_computed
from triplicate.sql.pg.analysis.expression_types import ExpressionTyping
from triplicate.sql.pg.analysis.name_scope import Outputs, Parameters, Relation, Scope, Tables, Visible, column_modifiers, column_oid
from triplicate.sql.pg.analysis.type_resolution import common_type
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.values import types

_COLUMNS_SEEN_MAX = 50_000
"""Upper bound on the columns of all tables and queries in a statement. Some short lines can have a billion."""


class SourceTyping(ExpressionTyping):
    """Adds the items of FROM to a scope.

    Args:
        tables: see `Analyzer`.
    """

    def __init__(self, tables: Tables, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._columns_seen = 0
        split = {name.lower(): [(column, *split_computed(declared)) for column, declared in columns] for name, columns in tables.items()}
        self._tables = {name: [(column, declared) for column, declared, _ in columns] for name, columns in split.items()}
        self._computed = {
            name: frozenset(column.lower() for column, _, is_computed in columns if is_computed) for name, columns in split.items()
        }

    # Relations.

    def table_columns(self, name: nodes.Name) -> Outputs | None:
        columns = self._tables.get(name.last.lower())
        return None if columns is None else [(column, column_oid(declared)) for column, declared in columns]

    def modifiers(self, name: nodes.Name) -> dict[str, tuple[int, ...]]:
        columns = self._tables.get(name.last.lower()) or ()
        return {column.lower(): found for column, declared in columns if (found := column_modifiers(declared))}

    def rows_of_trigger(self, rows: Sequence[tuple[str, str]]) -> Scope:
        """The scope around the statements of a trigger.

        Args:
            rows: (name, table) of each: ``new`` and ``old``.
        """
        return Scope(relations=[self._table(row, nodes.Name(0, 0, (table,))) for row, table in rows])

    def _table(self, shown: str, name: nodes.Name) -> Relation:
        table = name.last.lower()
        return Relation(shown, self.table_columns(name), True, self.modifiers(name), table, self._computed.get(table, frozenset()))

    def sources(self, source: nodes.FromItem, scope: Scope) -> None:
        """Add a whole FROM to the scope. Raises SqlError for a name that occurs twice, and for too many columns."""
        before = visible_of(scope.relations)
        found = self._source(source, scope)
        scope.has_merged = source.alias is None and has_merged(source)
        scope.visible = None if found is None or before is None else [*before, *found]
        names = Counter(relation.name.lower() for relation in scope.relations if relation.name)
        twice = next((name for name, count in names.items() if count > 1), None)
        if twice is not None:
            raise SqlError("42712", f'table name "{twice}" specified more than once', hint="Give one of them an alias.")

    def _source(self, source: nodes.FromItem, scope: Scope) -> list[Visible] | None:
        """Add an item of FROM. Returns the columns to which bare names and stars resolve; None if they are unknown."""
        if source.joined:
            return self._joined(source, scope)
        if source.is_lateral:
            raise SqlError(
                "0A000", "LATERAL is not available", hint="Join, or write a subquery in the select list.", position=source.start + 1
            )
        if source.table is not None:
            relation = self._relation(source, source.table, scope)
        elif source.query is not None:
            # A subquery does not see the other items of FROM.
            relation = Relation(source.alias.last if source.alias else "", self.query(source.query, scope.parent))
        else:
            assert source.call is not None, "a source is a table, a query, a call or a join"
            relation = self._called(source.call, source, scope)
        self._columns_seen += len(relation.columns or ())
        if self._columns_seen > _COLUMNS_SEEN_MAX:
            raise SqlError("54001", f"the tables and queries in FROM have more than {_COLUMNS_SEEN_MAX} columns together")
        if source.columns and relation.columns is not None:
            relation.columns = renamed(relation.columns, source.columns, f'table "{relation.name}"')
            source.expansion = tuple(quote(name) for name, _ in relation.columns)
            relation.is_table, relation.modifiers = False, {}
        scope.relations.append(relation)
        return visible_of([relation])

    def _relation(self, source: nodes.FromItem, name: nodes.Name, scope: Scope) -> Relation:
        shown, table = (source.alias or name).last, name.last.lower()
        if len(name.parts) == 1:
            is_common, outputs = scope.common_named(table)
            if is_common:
                return Relation(shown, outputs)
        source.in_schema = scope.is_declared(table)
        return self._table(shown, name)

    def _called(self, call: nodes.Call, source: nodes.FromItem, scope: Scope) -> Relation:
        name = source.alias.last if source.alias else call.name.last
        if call.name.last == "generate_series":
            for argument in call.arguments:
                self.expression(argument, scope)
            for argument in call.arguments:
                self.typing.resolve(argument, types.INT8)
            if any(argument.oid not in (types.INT2, types.INT4, types.INT8) for argument in call.arguments):
                raise SqlError("0A000", "generate_series() is available for integers only")
            return Relation(name, [(name, types.INT8)])
        for argument in call.arguments:
            self.expression(argument, scope)
        return Relation(name, None)

    # Joins.

    def _joined(self, source: nodes.FromItem, scope: Scope) -> list[Visible] | None:
        """Add a join. Its conditions see only its own relations."""
        inner = Scope(parent=scope.parent, hidden=scope.hidden, unnamed=scope.unnamed)
        sides = [self._source(joined, inner) for joined in source.joined]
        if len(sides) == 2 and source.kinds != (",",):
            found = self._merged(source, sides[0], sides[1])
        else:
            found = None if any(side is None for side in sides) else [one for side in sides for one in side or ()]
        for condition in source.conditions:
            inner.visible = found
            self.condition(condition, inner, "JOIN/ON")
            _qualify(condition, inner.relations)
        if source.alias is None:
            scope.relations += inner.relations
            return found
        columns = None if found is None else [(one.name, one.oid) for one in found]
        if found is not None and has_merged(source):
            source.expansion = expanded(found)
        relation = Relation(source.alias.last, columns)
        scope.relations.append(relation)
        return visible_of([relation])

    def _merged(self, source: nodes.FromItem, left: list[Visible] | None, right: list[Visible] | None) -> list[Visible] | None:
        """The columns of a join: the merged columns of USING or NATURAL, then the others of the left side, then those of the right."""
        if left is None or right is None:
            return None
        names = [name.last for name in source.using]
        if source.is_natural:
            right_names = {column.name.lower() for column in right}
            names = list(dict.fromkeys(column.name for column in left if column.name.lower() in right_names))
        lower = [name.lower() for name in names]
        twice = next((name for name, count in Counter(lower).items() if count > 1), None)
        if twice is not None:
            raise SqlError("42701", f'column name "{twice}" appears more than once in USING clause')
        merged = []
        for name in lower:
            left_column, right_column = (_merged_column(name, side, word) for side, word in ((left, "left"), (right, "right")))
            merged.append(_merge(source.kinds[0], left_column, right_column))
        others = [column for column in (*left, *right) if column.name.lower() not in lower]
        return [*merged, *others]


def _qualify(node: nodes.SyntaxNode, relations: Sequence[Relation]) -> None:
    """Qualify bare names in ON, which refer to the relations of the join. SQLite would search the whole FROM."""
    if isinstance(node, nodes.ColumnRef) and len(node.name.parts) == 1:
        owner = next((relation for relation in relations if relation is node.relation), None)
        if owner is not None and owner.name:
            node.qualifier = quote(owner.name)
    for child in node.children():
        _qualify(child, relations)


def _merged_column(name: str, side: Sequence[Visible], word: str) -> Visible:
    columns = [column for column in side if column.name.lower() == name]
    if not columns:
        raise SqlError("42703", f'column "{name}" specified in USING clause does not exist in {word} table')
    if len(columns) > 1:
        raise SqlError("42702", f'common column name "{name}" appears more than once in {word} table')
    return columns[0]


def _merge(kind: str, left: Visible, right: Visible) -> Visible:
    oid = common_type((left.oid, right.oid))
    if kind == "FULL":
        text = f"coalesce({left.text}, {right.text})" if left.text and right.text else ""
        return Visible(left.name, oid, text, None)
    preserved = right if kind == "RIGHT" else left
    return Visible(left.name, oid, preserved.text, preserved.relation)


def visible_of(relations: Sequence[Relation]) -> list[Visible] | None:
    """The columns of relations, in order; None if they are unknown."""
    visible: list[Visible] = []
    for relation in relations:
        if relation.columns is None:
            return None
        counts = Counter(name.lower() for name, _ in relation.columns)
        for name, oid in relation.columns:
            text = f"{quote(relation.name)}.{quote(name)}" if relation.name and counts[name.lower()] == 1 else ""
            visible.append(Visible(name, oid, text, relation))
    return visible


def has_merged(source: nodes.FromItem) -> bool:
    """Whether USING or NATURAL merges columns in it, so that SQLite expands a star in another order."""
    if source.using or source.is_natural:
        return True
    return any(has_merged(joined) for joined in source.joined if joined.alias is None)


def expanded(visible: Sequence[Visible]) -> tuple[str, ...]:
    """The columns that a star expands to, as items of a select list.

    Raises:
        SqlError: 0A000 for a column without an unambiguous name.
    """
    if not all(column.text for column in visible):
        raise SqlError(
            "0A000", "* over USING or NATURAL requires a name for each subquery and each of its columns", hint="Write (SELECT …) AS name."
        )
    return tuple(f"{column.text} AS {quote(column.name)}" for column in visible)


def renamed(outputs: Outputs, names: Sequence[nodes.Name], subject: str) -> Outputs:
    """The columns with other names; those after the last name keep theirs.

    Args:
        subject: of the error text.

    Raises:
        SqlError: 42P10 for more names than columns.
    """
    if len(names) > len(outputs):
        raise SqlError("42P10", f"{subject} has {len(outputs)} columns available but {len(names)} columns specified")
    return [(names[index].last if index < len(names) else name, oid) for index, (name, oid) in enumerate(outputs)]
