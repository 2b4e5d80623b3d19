"""Renders queries and changes. Pure."""

from __future__ import annotations

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import quote
from triplicate.sql.pg.analysis.analyzer import result_name, rows_of, selects_of
from triplicate.sql.pg.analysis.calls import VOLATILE
from triplicate.sql.pg.analysis.grouping import has_aggregate
from triplicate.sql.pg.analysis.overflow import may_be_long
from triplicate.sql.pg.syntax import dml_nodes, nodes
from triplicate.sql.pg.translate.render_calls import CallRenderer
from triplicate.sql.pg.translate.target_context import TargetContext


class StatementRenderer(CallRenderer):
    """Renders whole statements."""

    def __init__(self, source: str, first_supplied: int, context: TargetContext = TargetContext.STATEMENT) -> None:
        super().__init__(source, first_supplied, context)
        self._shortened: set[int] = set()
        """Identities of the rows of VALUES from which items were removed, and which are therefore not copied."""

    def _sort(self, node: nodes.Sort) -> None:
        """Render an item of ORDER BY with the order of NULLs. PostgreSQL sorts NULL after all values, SQLite before them."""
        by = node.by if node.by is not None else node.expression
        if node.is_result and not node.column_number:
            self.verbatim(node)
        elif node.column_number or may_be_long(by):
            if node.column_number:
                self.add(str(node.column_number), node)
            else:
                self.ordered(by)
            self.add((" DESC" if node.descending else "") + (f" NULLS {node.nulls}" if node.nulls else ""), node)
        else:
            self.verbatim(node)
        if not node.nulls:
            self.pieces.add(" NULLS FIRST" if node.descending else " NULLS LAST", node.end)

    def _item(self, node: nodes.SelectItem) -> None:
        name = _shown(node) if node.alias is None and (node.expression.is_ordered or node.keeps_name) else ""
        if node.alias is None and node.keeps_name:
            name = name or result_name(node.expression)
        self.verbatim(node)
        if name:
            # In SQLite, an expression of a column does not have the column's name.
            self.pieces.add(f" AS {quote(name)}", node.end)

    def _query(self, node: nodes.QueryExpression) -> None:
        for select in selects_of(node):
            _check(select)
        _find_sorted(node)
        cuts = [_query_cut(self.pieces.source, node.body)] if isinstance(node.body, nodes.QueryExpression) else []
        if isinstance(node.body, nodes.Values) and (node.order or node.limits is not None or node.is_fenced):
            cuts = _rows_as_table(node.body)
        if node.is_fenced and (node.limits is None or node.limits.offset is None):
            # SQLite merges no subquery with OFFSET into the query around it, where each use of a column would compute it again.
            at, all_rows = (node.end, " LIMIT -1") if node.limits is None else (node.limits.end, "")
            cuts.append((at, at, f"{all_rows} OFFSET 0"))
        if node.locking is None:
            self.replaced(node, cuts)
            return
        _check_lock(node)
        if "SKIP" in node.lock or "NOWAIT" in node.lock:
            raise SqlError("0A000", f"{node.lock} is not available", hint="Write FOR UPDATE: the transaction waits for the writer.")
        self.lock = node.lock
        self.replaced(node, [*cuts, (*node.locking, "")])

    def _compound(self, node: nodes.Compound) -> None:
        """Render a set operation. SQLite groups from the left without precedence, and allows no brackets around the parts."""
        cuts: list[tuple[int, int, str]] = []
        for part in (node.left, node.right):
            if isinstance(part, nodes.QueryExpression):
                opening, _, text = _query_cut(self.pieces.source, part)
                if isinstance(part.body, nodes.Select) and not (part.common or part.order or part.limits or part.locking):
                    # These brackets have no effect, and SQLite allows no recursion inside them.
                    closing = self.pieces.source.index(")", part.end)
                    cuts += [(opening, opening + 1, ""), (closing, closing + 1, "")]
                else:
                    cuts.append((opening, opening, text))
            elif isinstance(part, nodes.Compound) and part is node.right:
                cuts += [(part.start, part.start, "SELECT * FROM ("), (part.end, part.end, ")")]
            elif isinstance(part, nodes.Values):
                cuts += _rows_as_table(part)
        self.replaced(node, cuts)

    def _subquery(self, node: nodes.Subquery) -> None:
        """Render a scalar subquery that fails for more than one row. SQLite would use the first one."""
        if not node.width or _is_single(node.query):
            self.verbatim(node)
            return
        names = [f"value{index}" for index in range(1, node.width + 1)]
        self.add(f"(WITH triplicate_rows({', '.join(names)}) AS (", node)
        self.write(node.query)
        others = "".join(f", max({name})" for name in names[1:])
        rows = f"(SELECT {', '.join(names)} FROM triplicate_rows LIMIT 2)"
        self.add(f") SELECT triplicate_single(count(*), max(value1)){others} FROM {rows})", node)

    def _with(self, node: nodes.With) -> None:
        cuts: list[tuple[int, int, str]] = []
        if node.names_left:
            at = node.columns[-1].end
            cuts.append((at, at, "".join(f", {quote(name)}" for name in node.names_left)))
        if isinstance(node.body, nodes.QueryExpression) and is_volatile(node.body):
            at = self.pieces.source.rindex("(", 0, node.body.start)
            cuts.append((*node.materialized, "MATERIALIZED") if node.materialized is not None else (at, at, "MATERIALIZED "))
        if isinstance(node.body, nodes.QueryExpression):
            self._keep_names(node.body)
        self.replaced(node, cuts)

    def _limits(self, node: nodes.LimitClause) -> None:
        parts = [part for part in (node.limit, node.offset) if part is not None]
        if node.is_plain and all(isinstance(part, nodes.Literal) and part.value.isdigit() for part in parts):
            self.verbatim(node)
            return
        self.add("LIMIT ", node)
        if node.limit is None:
            self.add("-1", node)
        else:
            self._count(node.limit, is_offset=False)
        if node.offset is not None:
            self.add(" OFFSET ", node)
            self._count(node.offset, is_offset=True)

    def _count(self, node: nodes.Expression, *, is_offset: bool) -> None:
        if isinstance(node, nodes.Literal) and node.value.isdigit():
            self.add(node.value, node)
        else:
            self.call("triplicate_limit", node, node, "1" if is_offset else "0")

    # FROM.

    def _joined(self, node: nodes.FromItem) -> None:
        if node.alias is not None:
            if node.columns:
                raise SqlError("0A000", "names for the columns of a join are not available", hint="Name them in a subquery.")
            self.add(f"(SELECT {', '.join(node.expansion or ('*',))} FROM ", node)
            self.verbatim(nodes.FromItem(node.joined[0].start, node.joined[0].end, joined=node.joined))
            self.add(f") AS {self.pieces.source[node.alias.start : node.alias.end]}", node)
            return
        begin, end = ("(", ")") if node.needs_brackets else ("", "")
        self.add(begin, node)
        cuts: list[tuple[int, int, str]] = []
        for joined in node.joined[1:] if node.kinds[:1] == (",",) else ():
            # In SQLite the comma is an ordinary join, and the items before it would become the left side of the next join.
            if _needs_left_side(joined):
                cuts += [(joined.start, joined.start, "("), (joined.end, joined.end, ")")]
        self.replaced(node, cuts)
        self.add(end, node)

    def _from(self, node: nodes.FromItem) -> None:
        if node.joined:
            self._joined(node)
            return
        text = self.pieces.source[node.start : node.end].upper()
        cuts: list[tuple[int, int, str]] = []
        if text.startswith("ONLY") and node.table is not None and node.table.start > node.start:
            cuts.append((node.start, node.table.start, ""))
        if node.has_ordinality:
            raise SqlError("0A000", "WITH ORDINALITY is not available", hint="Write row_number() OVER ().")
        if node.call is not None and node.call.name.last == "generate_series":
            self._series(node, node.call)
            return
        if node.columns and node.table is not None:
            raise SqlError(
                "0A000", "names for the columns of a table are not available", hint="Name them in a subquery: (SELECT a AS b …)."
            )
        if node.table is not None:
            schema = "main." if node.in_schema else ""
            if len(node.table.parts) > 1 and node.table.parts[0] == "public":
                cuts.append((node.table.start, node.table.spans[1][0], schema))
            elif node.in_schema and len(node.table.parts) == 1:
                cuts.append((node.table.start, node.table.start, schema))
            self.replaced(node, cuts)
            return
        if node.query is not None:
            node.query.is_fenced = is_volatile(node.query)
            self._keep_names(node.query)
        if node.query is not None and node.columns and node.alias is not None:
            self._named_columns(node, node.query, node.alias)
            return
        self.verbatim(node)

    def _keep_names(self, query: nodes.QueryExpression) -> None:
        """Name the results as PostgreSQL does, where SQLite has other names: for expressions, as those that convert a column for UNION.

        SQLite renames a column where a stored query names it, but not where a query around that one names its result.
        """
        selects = selects_of(query)
        for item in [item for select in selects[:1] for item in select.items]:
            is_column = isinstance(item.expression, nodes.ColumnRef) and not item.expression.session_name
            may_stay = is_column and len(selects) == 1 and not self.context.is_without_session
            item.keeps_name = not (may_stay or item.is_shadow or isinstance(item.expression, nodes.Star))

    def _named_columns(self, node: nodes.FromItem, query: nodes.QueryExpression, alias: nodes.Name) -> None:
        """Render ``(query) alias(a, b)``. In SQLite only a common table expression can name its columns."""
        given = [self.pieces.source[column.start : column.end] for column in node.columns]
        names = ", ".join([*given, *(node.expansion or ())[len(given) :]])
        shown = self.pieces.source[alias.start : alias.end]
        self.add(f"(WITH {shown}({names}) AS (", node)
        self.write(query)
        self.add(f") SELECT * FROM {shown}) AS {shown}", node)

    def _series(self, node: nodes.FromItem, call: nodes.Call) -> None:
        """Render ``generate_series(a, b, step)`` as a recursive query of one column."""
        if not 2 <= len(call.arguments) <= 3:
            raise SqlError("42883", "generate_series() requires two or three integers")
        alias = self.pieces.source[node.alias.start : node.alias.end] if node.alias is not None else "generate_series"
        column = self.pieces.source[node.columns[0].start : node.columns[0].end] if node.columns else alias
        self.add("(WITH RECURSIVE triplicate_bounds(low, high, step) AS MATERIALIZED (SELECT ", node)
        self.write(call.arguments[0])
        self.add(", ", node)
        self.write(call.arguments[1])
        self.add(", ", node)
        if len(call.arguments) == 3:
            self.call("triplicate_step", node, call.arguments[2])
        else:
            self.add("1", node)
        self.add(
            f"), triplicate_series({column}) AS (SELECT low FROM triplicate_bounds WHERE (step > 0 AND low <= high) OR (step < 0 AND "
            f"low >= high) UNION ALL SELECT {column} + step FROM triplicate_series, triplicate_bounds WHERE "
            f"(step > 0 AND {column} <= high - step) OR (step < 0 AND {column} >= high - step)) "
            f"SELECT {column} FROM triplicate_series) AS {alias}",
            node,
        )

    # Changes.

    def _table_cuts(self, table: nodes.Name, start: int) -> list[tuple[int, int, str]]:
        """Remove ONLY and the schema. There is no inheritance, and only one schema."""
        end = table.spans[1][0] if len(table.parts) > 1 and table.parts[0] == "public" else table.start
        only = self.pieces.source.upper().rfind("ONLY", start, table.start)
        begin = only if only >= 0 and self.pieces.source[only + 4 : table.start].isspace() else table.start
        return [(begin, end, "")] if begin < end else []

    def _alias_cut(self, table: nodes.Name, alias: nodes.Name | None) -> list[tuple[int, int, str]]:
        """Add AS before the alias of a changed table, which SQLite requires."""
        if alias is None or not self.pieces.source[table.end : alias.start].isspace():
            return []
        return [(table.end, table.end, " AS")]

    def _unqualify(self, items: list[nodes.SelectItem], owner: str) -> None:
        """Remove qualifiers in RETURNING. If the table has an alias, SQLite resolves its columns only by their bare names there."""
        waiting: list[nodes.SyntaxNode] = list(items)
        while waiting:
            node = waiting.pop()
            if isinstance(node, nodes.ColumnRef) and len(node.name.parts) == 2 and node.name.parts[0].lower() == owner.lower():
                start, end = node.name.spans[-1]
                node.name = nodes.Name(start, end, node.name.parts[-1:], node.name.spans[-1:], node.name.quoted)
            elif isinstance(node, nodes.Star) and node.qualifier is not None and node.qualifier.last.lower() == owner.lower():
                node.qualifier = None
            waiting.extend(node.children())

    def _insert(self, node: dml_nodes.InsertStatement) -> None:
        cuts = self._table_cuts(node.table, node.common[-1].end if node.common else node.start)
        if node.overriding is not None:
            text = self.pieces.source[slice(*node.overriding)].upper()
            if "USER" in text:
                raise SqlError("0A000", "OVERRIDING USER VALUE is not available", hint="Leave the column out.")
            cuts.append((*node.overriding, ""))
        query = node.query
        if query is not None and isinstance(query.body, nodes.Values) and not query.common:
            self._default_values(node, query.body, cuts)
        if query is not None and node.first_columns:
            at = (node.alias or node.table).end
            cuts.append((at, at, f" ({', '.join(map(quote, node.first_columns))})"))
        if query is not None and node.conflicts and isinstance(query.body, nodes.Select):
            select = query.body
            if select.source is not None and select.where is None and not select.group and not query.order and query.limits is None:
                # Without WHERE, SQLite parses ON as the condition of a join.
                cuts.append((query.end, query.end, " WHERE true"))
        self._unqualify(node.returning, (node.alias or node.table).last)
        self.replaced(node, cuts)

    def _default_values(self, node: dml_nodes.InsertStatement, values: nodes.Values, cuts: list[tuple[int, int, str]]) -> None:
        """Remove a column whose value is DEFAULT. In SQLite a column can be omitted only for all rows."""
        positions = {
            index
            for row in values.rows
            for index, item in enumerate(row.items)
            if isinstance(item, nodes.Literal) and item.kind == "default"
        }
        if not positions:
            return
        everywhere = all(
            index < len(row.items) and isinstance(item := row.items[index], nodes.Literal) and item.kind == "default"
            for row in values.rows
            for index in positions
        )
        if not everywhere or not node.columns or len(node.columns) != len(values.rows[0].items):
            raise SqlError(
                "0A000",
                "DEFAULT among values is available if the columns are named and every row has it at the same position",
                hint="Leave the column out of the list, and insert rows with other columns by another statement.",
            )
        columns = [column for index, column in enumerate(node.columns) if index not in positions]
        if not columns:
            if len(values.rows) > 1 or node.query is None:
                raise SqlError("0A000", "several rows with DEFAULT for every column are not available", hint="Insert them one by one.")
            opening = self.pieces.source.rindex("(", 0, node.columns[0].start)
            cuts.append((opening, node.query.end, " DEFAULT VALUES"))
            node.query = None
            return
        shown = ", ".join(self.pieces.source[column.start : column.end] for column in columns)
        cuts.append((node.columns[0].start, node.columns[-1].end, shown))
        for row in values.rows:
            row.items = [item for index, item in enumerate(row.items) if index not in positions]
            row.is_explicit = False
        self._shortened.update(id(row) for row in values.rows)

    def _row(self, node: nodes.RowConstructor) -> None:
        if id(node) not in self._shortened:
            super()._row(node)
            return
        self.call("", node, *node.items)

    def _conflict(self, node: dml_nodes.Conflict) -> None:
        if node.constraint is not None:
            raise SqlError(
                "0A000", "ON CONFLICT ON CONSTRAINT is not available", hint="Name the constraint's columns: ON CONFLICT (a, b) DO …."
            )
        at = node.start
        for child in node.children():
            self.pieces.copy(at, child.start)
            if isinstance(child, nodes.Sort):
                self.verbatim(child)
            else:
                self.write(child)
            at = child.end
        self.pieces.copy(at, node.end)

    def _update(self, node: dml_nodes.UpdateStatement) -> None:
        if node.source is not None and any(isinstance(item.expression, nodes.Star) for item in node.returning):
            raise SqlError("0A000", "RETURNING * of UPDATE … FROM is not available", hint="Name the changed table's columns.")
        cuts = self._table_cuts(node.table, node.common[-1].end if node.common else node.start)
        self._unqualify(node.returning, (node.alias or node.table).last)
        cuts += self._alias_cut(node.table, node.alias)
        if node.source is None and any(map(has_query, node.assignments)):
            # SQLite computes new values row by row, and a query would read rows changed before. With FROM it computes all values first.
            at = node.assignments[-1].end
            cuts.append((at, at, " FROM (SELECT 1) AS triplicate_once"))
        self.replaced(node, cuts)

    def _delete(self, node: dml_nodes.DeleteStatement) -> None:
        cuts = self._table_cuts(node.table, node.common[-1].end if node.common else node.start)
        cuts += self._alias_cut(node.table, node.alias)
        self._unqualify(node.returning, (node.alias or node.table).last)
        if node.using is None:
            self.replaced(node, cuts)
            return
        if node.returning:
            raise SqlError("0A000", "DELETE … USING … RETURNING is not available", hint="Write WHERE EXISTS (SELECT … ).")
        # USING becomes a subquery in WHERE EXISTS.
        begin = self.pieces.source.upper().rindex("USING", 0, node.using.start + 1)
        head_end = node.alias.end if node.alias is not None else node.table.end
        at = node.start
        for common in node.common:
            self.pieces.copy(at, common.start)
            self.write(common)
            at = common.end
        for start, end, text in cuts:
            self.pieces.copy(at, start)
            self.pieces.add(text, start)
            at = end
        self.pieces.copy(at, max(head_end, at))
        self.pieces.copy(max(head_end, at), begin)
        self.add("WHERE EXISTS (SELECT 1 FROM ", node.using)
        self.write(node.using)
        if node.where is not None:
            self.pieces.copy(node.using.end, node.where.start)
            self.write(node.where)
            self.pieces.copy(node.where.end, node.end)
        self.add(")", node)


def is_volatile(query: nodes.QueryExpression) -> bool:
    """Whether the query calls a function that has another result each time."""
    pending: list[nodes.SyntaxNode] = [query]
    while pending:
        node = pending.pop()
        if isinstance(node, nodes.Call) and node.name.last in VOLATILE:
            return True
        pending.extend(node.children())
    return False


def has_query(node: nodes.SyntaxNode) -> bool:
    """Whether the node contains a query that may read a table."""
    if isinstance(node, nodes.FromItem) and node.call is None:
        return True
    return any(map(has_query, node.children()))


def _check(select: nodes.Select) -> None:
    if select.distinct_on:
        raise SqlError(
            "0A000", "SELECT DISTINCT ON is not available", hint="Use row_number() OVER (PARTITION BY … ORDER BY …) in a subquery."
        )
    if not select.items:
        raise SqlError("0A000", "a SELECT without columns is not available")


def _check_lock(query: nodes.QueryExpression) -> None:
    """Refuse a row lock where the result's rows are not rows of a table. Raises SqlError 0A000."""
    select = query.body
    if isinstance(select, nodes.Compound):
        clause = "UNION/INTERSECT/EXCEPT"
    elif isinstance(select, nodes.Select) and select.is_distinct:
        clause = "DISTINCT clause"
    elif isinstance(select, nodes.Select) and select.group:
        clause = "GROUP BY clause"
    elif isinstance(select, nodes.Select) and (select.having or any(has_aggregate(item.expression) for item in select.items)):
        clause = "aggregate functions"
    else:
        return
    raise SqlError("0A000", f"{query.lock} is not allowed with {clause}")


def _needs_left_side(source: nodes.FromItem) -> bool:
    """Whether the result of a join depends on which side is left."""
    if source.alias is not None or not source.joined:
        return False
    if source.using or source.is_natural or source.kinds[:1] in (("RIGHT",), ("FULL",)):
        return True
    return len(source.joined) > 1 and any(map(_needs_left_side, source.joined))


def _rows_as_table(values: nodes.Values) -> list[tuple[int, int, str]]:
    """The cuts that make VALUES a subquery, which SQLite requires in a set operation and before ORDER BY."""
    return [(values.start, values.start, "SELECT * FROM ("), (values.end, values.end, ")")]


def _query_cut(source: str, query: nodes.QueryExpression) -> tuple[int, int, str]:
    """The cut that makes a query in brackets a subquery in FROM."""
    opening = source.rindex("(", 0, query.start)
    return opening, opening, "SELECT * FROM "


def _find_sorted(query: nodes.QueryExpression) -> None:
    """Mark the columns of the result to which ORDER BY refers, so that a numeric that may be stored as text is sorted as a number."""
    rows = rows_of(query.body)
    names = [_shown(item) for item in _first_items(query.body)]
    is_plain = isinstance(query.body, nodes.Select) and not query.body.is_distinct
    for sort in query.order:
        # A set operation can only be sorted by the columns of its result.
        sort.is_result = not isinstance(query.body, nodes.Select)
        number = _column_number(sort.expression, names)
        if not number or any(len(row) < number or any(isinstance(item, nodes.Star) for item in row) for row in rows):
            continue
        column = [row[number - 1] for row in rows]
        if is_plain and may_be_long(column[0]):
            sort.by = column[0]
            continue
        sort.is_result = True
        if any(map(may_be_long, column)):
            # The name could refer to a column of a table that is stored as text.
            sort.column_number = number
        for expression in column:
            expression.is_ordered = may_be_long(expression)


def _first_items(body: nodes.Body) -> list[nodes.SelectItem]:
    """The select list that names the columns of the result."""
    match body:
        case nodes.Select():
            return body.items
        case nodes.Compound():
            return _first_items(body.left)
        case nodes.QueryExpression():
            return _first_items(body.body)
    return []


def _column_number(expression: nodes.Expression, names: list[str]) -> int:
    """The number from 1 of the result's column to which an expression of ORDER BY refers; 0 if it refers to none."""
    if isinstance(expression, nodes.Literal) and expression.kind == "number" and expression.value.isdigit():
        return int(expression.value)
    if isinstance(expression, nodes.ColumnRef) and len(expression.name.parts) == 1:
        name = expression.name.last.lower()
        return names.index(name) + 1 if name in names else 0
    return 0


def _shown(item: nodes.SelectItem) -> str:
    if item.alias is not None:
        return item.alias.last.lower()
    return item.expression.name.last.lower() if isinstance(item.expression, nodes.ColumnRef) else ""


def _is_single(query: nodes.QueryExpression) -> bool:
    """Whether the query certainly has at most one row."""
    limit = query.limits.limit if query.limits is not None else None
    if isinstance(limit, nodes.Literal) and limit.value in ("0", "1"):
        return True
    body = query.body
    if isinstance(body, nodes.Values):
        return len(body.rows) == 1
    if not isinstance(body, nodes.Select) or body.group:
        return False
    return body.source is None or any(has_aggregate(item.expression) for item in body.items)
