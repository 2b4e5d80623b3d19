"""Parses SELECT, VALUES, INSERT, UPDATE and DELETE into trees of `nodes`. Pure.

For any other text `parse` returns None, and SQLite accepts or refuses the text.
Source: PostgreSQL 15 documentation, "SQL Commands"; SQLite's grammar for its additions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Token
from triplicate.sql.pg.syntax import dml_nodes, nodes
from triplicate.sql.pg.syntax.dml_nodes import DmlStatement
from triplicate.sql.pg.syntax.expression_parser import ExpressionParser
from triplicate.sql.pg.syntax.nodes import Expression, FromItem, Name, QueryExpression, Select, SelectItem, With
from triplicate.sql.pg.syntax.token_cursor import NotUnderstood

_Part = TypeVar("_Part")

_AFTER_ITEM = {
    "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "FETCH", "FOR", "UNION", "EXCEPT", "INTERSECT", "WINDOW", "INTO",
    "RETURNING", "ON", "USING", "AS", "SET", "VALUES", "SELECT", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL",
    "DEFAULT", "INDEXED", "NOT", "TABLESAMPLE", "WITH", "WHEN", "THEN", "ELSE", "END", "AND", "OR", "IS", "IN", "LIKE", "ILIKE",
    "BETWEEN", "COLLATE", "DO", "OVERRIDING",
}  # fmt: skip
"""Words that continue the statement after an item and are therefore not aliases."""
_JOIN_WORDS = ("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL")
_LONGEST_COMPOUND = 100


class StatementParser(ExpressionParser):
    """Parses one statement."""

    def statement(self) -> DmlStatement:
        """Parse the whole text. Raises NotUnderstood."""
        found = self._statement()
        self.accept(";")
        if self.token.kind != "end":
            raise self.not_understood()
        return found

    def _statement(self) -> DmlStatement:
        start = self.token.start
        common = self._common()
        match self.token.upper:
            case "INSERT":
                return self._insert(start, common)
            case "UPDATE":
                return self._update(start, common)
            case "DELETE":
                return self._delete(start, common)
            case "MERGE":
                raise SqlError("0A000", "MERGE is not available", hint="Write INSERT … ON CONFLICT, or UPDATE … FROM and INSERT … SELECT.")
            case "SELECT" | "VALUES" | "(":
                return self._query(start, common)
        raise self.not_understood()

    def listed(self, part: Callable[[], _Part]) -> list[_Part]:
        """Parse one or more parts with commas between them."""
        parts = [part()]
        while self.accept(","):
            parts.append(part())
        return parts

    # Queries.

    def query_in_brackets(self) -> QueryExpression:
        start = self.token.start
        self._depth += 1
        found = self._query(start, self._common())
        self._depth -= 1
        return found

    def _common(self) -> list[With]:
        if not self.accept("WITH"):
            return []
        is_recursive = self.accept("RECURSIVE")
        return self.listed(lambda: self._with(is_recursive))

    def _with(self, is_recursive: bool) -> With:
        start = self.token.start
        name = self.name()
        columns = self._column_names() if self.token.upper == "(" else ()
        self.expect("AS")
        materialized = None
        if self.token.upper in ("MATERIALIZED", "NOT"):
            begin = self.token.start
            self.accept("NOT")
            self.expect("MATERIALIZED")
            materialized = (begin, self.last_end)
        self.expect("(")
        self._depth += 1
        body = self._statement()
        self._depth -= 1
        self.expect(")")
        return With(start, self.last_end, name, columns, body, materialized, is_recursive)

    def _column_names(self) -> tuple[Name, ...]:
        self.expect("(")
        found = self.listed(self.name)
        self.expect(")")
        return tuple(found)

    def _query(self, start: int, common: list[With]) -> QueryExpression:
        body = self._compound()
        order = self.order_by() if self.token.upper == "ORDER" else []
        limits = self._limits()
        locking, lock = self._locking()
        if limits is None:
            limits = self._limits()
        return QueryExpression(start, self.last_end, common, body, order, limits, locking, lock)

    def _compound(self) -> nodes.Body:
        start = self.token.start
        left = self._intersection()
        parts = 1
        while self.token.upper in ("UNION", "EXCEPT"):
            operator = self._set_operator()
            right = self._intersection()
            left = nodes.Compound(start, self.last_end, left, right, operator)
            parts += 1
            self._check_parts(parts)
        return left

    def _intersection(self) -> nodes.Body:
        start = self.token.start
        left = self._primary()
        parts = 1
        while self.token.upper == "INTERSECT":
            operator = self._set_operator()
            right = self._primary()
            left = nodes.Compound(start, self.last_end, left, right, operator)
            parts += 1
            self._check_parts(parts)
        return left

    def _check_parts(self, parts: int) -> None:
        """Check the length of a compound, whose tree is as deep. In SQLite's words, the statement would have another meaning."""
        if parts > _LONGEST_COMPOUND:
            raise SqlError(
                "54001",
                f"more than {_LONGEST_COMPOUND} queries in a row of UNION, EXCEPT or INTERSECT",
                hint="Put some of them in brackets, or write VALUES.",
            )

    def _set_operator(self) -> str:
        operator = self.advance().upper
        if self.accept("ALL"):
            return f"{operator} ALL"
        self.accept("DISTINCT")
        return operator

    def _primary(self) -> nodes.Body:
        if self.token.upper == "(":
            self.advance()
            query = self.query_in_brackets()
            self.expect(")")
            return query
        if self.token.upper == "VALUES":
            return self._values()
        if self.token.upper == "SELECT":
            return self._select()
        raise self.not_understood()

    def _values(self) -> nodes.Values:
        start = self.advance().start
        rows = self.listed(self._values_row)
        return nodes.Values(start, self.last_end, rows)

    def _values_row(self) -> nodes.RowConstructor:
        start = self.expect("(").start
        items = self.expressions()
        self.expect(")")
        return nodes.RowConstructor(start, self.last_end, items)

    def _select(self) -> Select:
        start = self.advance().start
        is_distinct = self.accept("DISTINCT")
        distinct_on: list[Expression] = []
        if is_distinct and self.accept("ON"):
            self.expect("(")
            distinct_on = self.expressions()
            self.expect(")")
        if not is_distinct:
            self.accept("ALL")
        ends = ("FROM", "WHERE", "GROUP", "UNION", "")
        items = [] if self.token.upper in ends and self.token.kind in ("word", "end") else self.listed(self.item)
        if self.token.upper == "INTO":
            raise self.not_understood()
        source = self._sources() if self.accept("FROM") else None
        where = self.expression() if self.accept("WHERE") else None
        group = self._group() if self.accept("GROUP", "BY") else []
        having = self.expression() if self.accept("HAVING") else None
        windows = self.listed(self._named_window) if self.accept("WINDOW") else []
        return Select(start, self.last_end, is_distinct, distinct_on, items, source, where, group, having, windows)

    def _group(self) -> list[Expression]:
        if self.token.upper in ("ROLLUP", "CUBE", "GROUPING", "ALL", "DISTINCT"):
            raise self.not_understood()
        return self.expressions()

    def _named_window(self) -> nodes.WindowDefinition:
        self.identifier()
        self.expect("AS")
        return self.window()

    def item(self) -> SelectItem:
        start = self.token.start
        expression = self.expression()
        alias = self._alias()
        return SelectItem(start, self.last_end, expression, alias)

    def _alias(self) -> Name | None:
        if self.accept("AS"):
            return self.name()
        if self.token.kind == "quoted" or (self.token.kind == "word" and self.token.upper not in _AFTER_ITEM):
            return self.name()
        return None

    def _limits(self) -> nodes.LimitClause | None:
        start = self.token.start
        limit: Expression | None = None
        offset: Expression | None = None
        is_plain, any_found = True, False
        while self.token.upper in ("LIMIT", "OFFSET", "FETCH"):
            word = self.advance().upper
            if word == "LIMIT":
                if self.accept("ALL"):
                    is_plain = False
                else:
                    limit = self.expression()
                    if self.accept(","):
                        offset, limit = limit, self.expression()
                is_plain = is_plain and not any_found
            elif word == "OFFSET":
                offset = self.expression()
                is_plain = is_plain and limit is not None and not (self.accept("ROWS") or self.accept("ROW"))
                if self.token.upper in ("ROW", "ROWS"):
                    self.advance()
            else:
                limit, is_plain = self._fetch(), False
            any_found = True
        return nodes.LimitClause(start, self.last_end, limit, offset, is_plain) if any_found else None

    def _fetch(self) -> Expression:
        if not (self.accept("FIRST") or self.accept("NEXT")):
            raise self.not_understood()
        if self.token.upper in ("ROW", "ROWS"):
            at = self.token.start
            count: Expression = nodes.Literal(at, at, "number", "1")
        else:
            count = self.expression()
        if not (self.accept("ROWS") or self.accept("ROW")):
            raise self.not_understood()
        self.expect("ONLY")
        return count

    def _locking(self) -> tuple[tuple[int, int] | None, str]:
        if self.token.upper != "FOR":
            return None, ""
        start, begin = self.token.start, self._at
        while self.accept("FOR"):
            if not (self.accept("UPDATE") or self.accept("SHARE") or self.accept("NO", "KEY", "UPDATE") or self.accept("KEY", "SHARE")):
                raise self._syntax_error()
            if self.accept("OF"):
                self.listed(self.dotted)
            if not self.accept("NOWAIT"):
                self.accept("SKIP", "LOCKED")
        return (start, self.last_end), " ".join(token.upper for token in self._tokens[begin : self._at])

    # FROM.

    def _sources(self) -> FromItem:
        start = self.token.start
        groups = [self._joins(start, self._source())]
        while self.accept(","):
            groups.append(self._joins(self.token.start, self._source()))
        if len(groups) == 1:
            return groups[0]
        return FromItem(start, self.last_end, joined=tuple(groups), kinds=(",",) * (len(groups) - 1))

    def _joins(self, start: int, left: FromItem) -> FromItem:
        """Parse the JOINs after `left`. In PostgreSQL, JOIN binds more tightly than the comma."""
        count = 0
        while self.token.upper in _JOIN_WORDS:
            left = self._join(start, left)
            count += 1
            if count > _LONGEST_COMPOUND:
                raise SqlError("54001", f"more than {_LONGEST_COMPOUND} tables are joined in one FROM")
        return left

    def _join(self, start: int, left: FromItem) -> FromItem:
        is_natural = self.accept("NATURAL")
        kind = self.advance().upper if self.token.upper in ("LEFT", "RIGHT", "FULL", "INNER", "CROSS") else ""
        if kind in ("LEFT", "RIGHT", "FULL"):
            self.accept("OUTER")
        if self.token.upper != "JOIN" or (is_natural and kind == "CROSS"):
            raise self._syntax_error()
        self.advance()
        begin = self.token.start
        right = self._source()
        found = FromItem(start, start, joined=(left, right), kinds=("" if kind in ("INNER", "CROSS") else kind,), is_natural=is_natural)
        if is_natural or kind == "CROSS":
            if self.token.upper == "USING" or (self.token.upper == "ON" and self.ahead().upper != "CONFLICT"):
                raise self._syntax_error()
        else:
            nested = self._joins(begin, right)
            if nested is not right:
                nested.needs_brackets = True
                found.joined = (left, nested)
            if self.accept("ON"):
                found.conditions = (self.expression(),)
            elif self.accept("USING"):
                found.using = self._column_names()
                if self.token.upper == "AS":
                    raise SqlError("0A000", "JOIN … USING (…) AS name is not available", hint="Name the columns by their tables.")
            else:
                raise self._syntax_error("JOIN requires ON or USING: write CROSS JOIN, or the condition")
        found.end = self.last_end
        return found

    def _syntax_error(self, reason: str = "") -> SqlError:
        token = self.token
        at = "at end of input" if token.kind == "end" else f'at or near "{token.text}"'
        return SqlError("42601", f"syntax error {at}", hint=reason or None, position=token.start + 1)

    def _source(self) -> FromItem:
        start = self.token.start
        found = FromItem(start, start, is_lateral=self.accept("LATERAL"))
        self.accept("ONLY")
        if self.token.upper == "(":
            if self.begins_query(1) and self._is_query_source():
                self.advance()
                found.query = self.query_in_brackets()
            else:
                self.advance()
                inner = self._sources()
                found.joined = (inner,)
            self.expect(")")
        else:
            name = self.dotted()
            if self.token.upper == "(":
                called = self._call(name)
                if not isinstance(called, nodes.Call):
                    raise self.not_understood()
                found.call = called
                found.has_ordinality = self.accept("WITH", "ORDINALITY")
            else:
                found.table = name
        found.alias = self._alias()
        if found.alias is not None and self.token.upper == "(":
            found.columns = self._column_names()
        if self.accept("INDEXED", "BY"):
            self.identifier()
        else:
            self.accept("NOT", "INDEXED")
        found.end = self.last_end
        return found

    def _is_query_source(self) -> bool:
        """Whether brackets in FROM contain a query, as ``((select …) union …)`` does and ``((select …) a join b)`` does not."""
        return self.ahead().upper != "(" or self._is_query_bracket()

    # Changes.

    def _table(self) -> Name:
        self.accept("ONLY")
        name = self.dotted()
        self.accept("*")
        return name

    def _insert(self, start: int, common: list[With]) -> dml_nodes.InsertStatement:
        self.advance()
        if self.token.upper == "OR":
            self._at += 2
        self.expect("INTO")
        table = self.dotted()
        alias = self.name() if self.accept("AS") else None
        columns = self._column_names() if self.token.upper == "(" and not self.begins_query() else ()
        overriding = None
        if self.token.upper == "OVERRIDING":
            begin = self.advance().start
            self._at += 1
            self.expect("VALUE")
            overriding = (begin, self.last_end)
        query = None if self.accept("DEFAULT", "VALUES") else self.query_in_brackets()
        conflicts = []
        while self.token.upper == "ON" and self.ahead().upper == "CONFLICT":
            conflicts.append(self._conflict())
        returning = self._returning()
        return dml_nodes.InsertStatement(start, self.last_end, common, table, alias, columns, query, conflicts, returning, overriding)

    def _conflict(self) -> dml_nodes.Conflict:
        start = self.token.start
        self._at += 2
        target: list[nodes.Sort] = []
        target_where, constraint = None, None
        if self.accept("("):
            target = self.listed(self.sort)
            self.expect(")")
            target_where = self.expression() if self.accept("WHERE") else None
        elif self.accept("ON", "CONSTRAINT"):
            constraint = self.name()
        self.expect("DO")
        if self.accept("NOTHING"):
            return dml_nodes.Conflict(start, self.last_end, target, target_where, constraint, [], None)
        self.expect("UPDATE")
        self.expect("SET")
        assignments = self.listed(self._assignment)
        where = self.expression() if self.accept("WHERE") else None
        return dml_nodes.Conflict(start, self.last_end, target, target_where, constraint, assignments, where)

    def _assignment(self) -> dml_nodes.Assignment:
        start = self.token.start
        columns = self._column_names() if self.token.upper == "(" else (self.name(),)
        if self.accept("."):
            columns = (self.name(),)
        self.expect("=")
        value = self.expression()
        return dml_nodes.Assignment(start, self.last_end, columns, value)

    def _returning(self) -> list[SelectItem]:
        return self.listed(self.item) if self.accept("RETURNING") else []

    def _update(self, start: int, common: list[With]) -> dml_nodes.UpdateStatement:
        self.advance()
        if self.token.upper == "OR":
            self._at += 2
        table = self._table()
        alias = self._alias()
        self.expect("SET")
        assignments = self.listed(self._assignment)
        source = self._sources() if self.accept("FROM") else None
        where = self.expression() if self.accept("WHERE") else None
        returning = self._returning()
        if self.token.upper in ("ORDER", "LIMIT"):
            raise self.not_understood()
        return dml_nodes.UpdateStatement(start, self.last_end, common, table, alias, assignments, source, where, returning)

    def _delete(self, start: int, common: list[With]) -> dml_nodes.DeleteStatement:
        self.advance()
        self.expect("FROM")
        table = self._table()
        alias = self._alias()
        using = self._sources() if self.accept("USING") else None
        where = self.expression() if self.accept("WHERE") else None
        returning = self._returning()
        return dml_nodes.DeleteStatement(start, self.last_end, common, table, alias, using, where, returning)


def parse(tokens: Sequence[Token], size: int) -> DmlStatement | None:
    """The tree of one statement, or None if this grammar does not cover it.

    Args:
        tokens: of the statement, with positions in its text. size: characters of the text.

    Raises:
        SqlError: as `Token.string` for a malformed string constant; 42601 for what SQLite accepts and PostgreSQL refuses; 0A000 for
            MERGE and TABLE; 54001 for too many joined tables or queries of a UNION.
    """
    first = tokens[0].upper if tokens else ""
    if first not in ("SELECT", "VALUES", "WITH", "INSERT", "UPDATE", "DELETE", "(", "TABLE", "MERGE"):
        return None
    try:
        return StatementParser(tokens, size).statement()
    except NotUnderstood as error:
        if error.token.upper == "TABLE" and error.token.kind == "word":
            raise SqlError("0A000", "TABLE name is not available", hint="Write SELECT * FROM name.") from None
        return None
