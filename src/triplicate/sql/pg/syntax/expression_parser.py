"""Parses expressions by precedence climbing, with PostgreSQL's operator precedences. Pure.

Source: PostgreSQL 15 documentation, "Operator Precedence" and "Value Expressions".
"""

from __future__ import annotations

from triplicate.errors import SqlError
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.syntax.nodes import Expression, Name, QueryExpression, Sort
from triplicate.sql.pg.syntax.token_cursor import TokenCursor, check_schema

OR, AND, NOT, IS, COMPARISON, LIKE, OTHER, SUM, PRODUCT, POWER, ZONE, COLLATE, SIGN, SUBSCRIPT, CAST = range(1, 16)
"""Precedences of operators, the lowest first."""

_BINARY = {
    "^": POWER, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "+": SUM, "-": SUM,
    "=": COMPARISON, "<": COMPARISON, ">": COMPARISON, "<=": COMPARISON, ">=": COMPARISON, "<>": COMPARISON, "!=": COMPARISON,
    "==": COMPARISON,
    **dict.fromkeys(
        ("||", "->", "->>", "#>", "#>>", "@>", "<@", "<<", ">>", "&", "|", "#", "~", "~*", "!~", "!~*", "~~", "~~*", "!~~", "!~~*",
         "&&", "^@", "#-", "@@", "@@@"), OTHER),
}  # fmt: skip
_PREFIX = {"-": SIGN, "+": SIGN, "~": OTHER, "@": OTHER, "!!": OTHER, "|/": OTHER, "||/": OTHER}
_LIKES = ("LIKE", "ILIKE", "SIMILAR", "GLOB", "REGEXP", "MATCH")
_QUANTIFIERS = ("ANY", "ALL", "SOME")
MOMENTS = {"CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIMESTAMP", "LOCALTIME"}
_MOMENT_CALLS = {"now", "transaction_timestamp", "statement_timestamp", "clock_timestamp"}
_TYPED = {
    "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMETZ", "INTERVAL", "BOOL", "BOOLEAN", "UUID", "JSON", "JSONB", "BYTEA", "TEXT",
    "NUMERIC", "DECIMAL", "INT", "INTEGER", "INT2", "INT4", "INT8", "BIGINT", "SMALLINT", "FLOAT4", "FLOAT8", "REAL", "REGCLASS",
    "REGTYPE", "VARCHAR", "NAME", "OID", "DOUBLE",
}  # fmt: skip
_NOT_NAMES = {
    "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT", "INTERSECT", "ON", "USING",
    "RETURNING", "VALUES", "SET", "WINDOW", "WHEN", "THEN", "ELSE", "END", "AND", "OR", "IN", "IS", "AS", "BETWEEN", "LIKE", "ILIKE",
    "SIMILAR", "GLOB", "REGEXP", "MATCH", "COLLATE", "ISNULL", "NOTNULL", "INTO", "JOIN", "DISTINCT", "CREATE", "TABLE", "ASC",
    "DESC", "CROSS", "NATURAL", "INNER", "FULL", "OUTER", "FOR", "WITH", "TO",
}  # fmt: skip
"""Keywords that are not names of columns unless quoted."""
_DEEPEST = 100
_LONGEST_CHAIN = 150
"""More operators of one strength in a row. Chains of AND, OR and || have no limit: they are grouped as balanced trees."""
_GROUP = 100
"""Operands of AND or OR that stand side by side in a group."""


def _too_complex() -> SqlError:
    return SqlError(
        "54001",
        f"the statement is too complex: expressions may be nested {_DEEPEST} levels deep, and have {_LONGEST_CHAIN} operators in a row",
        hint="AND, OR and || have no such limit in a row. IN (…), or a join with VALUES, takes many values.",
    )


class ExpressionParser(TokenCursor):
    """Parses expressions. The subclass parses queries in them. Methods raise NotUnderstood for tokens outside the grammar."""

    def query_in_brackets(self) -> QueryExpression:
        """Parse the query that begins at the present token, after an opening bracket."""
        raise NotImplementedError

    def begins_query(self, distance: int = 0) -> bool:
        """Whether a query begins at a distance from the present token, perhaps after more brackets."""
        outermost = distance
        while self.ahead(distance).upper == "(":
            distance += 1
            if distance - outermost > _DEEPEST:
                raise _too_complex()
        return self.ahead(distance).upper in ("SELECT", "VALUES", "WITH")

    def expression(self, weakest: int = OR) -> Expression:
        """Parse an expression whose operators have at least the precedence `weakest`."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _too_complex()
        start = self.token.start
        left = self._prefix()
        chain = 0
        while True:
            longer = self._postfix(left, start, weakest)
            if longer is None:
                break
            left = longer
            chain += 1
            if chain > _LONGEST_CHAIN:
                raise _too_complex()
        self._depth -= 1
        return left

    def _postfix(self, left: Expression, start: int, weakest: int) -> Expression | None:
        """Parse the operator after `left` and its right operand. None if no operator of at least the precedence `weakest` follows."""
        token = self.token
        word = token.upper
        if token.kind == "operator":
            if word == "::":
                self.advance()
                kind = self.type_name()
                return nodes.Cast(start, self.last_end, left, kind, "::")
            if word == "[":
                return self._subscript(left, start)
            strength = _BINARY.get(word)
            if strength is None or strength < weakest:
                return None
            if strength == COMPARISON and isinstance(left, nodes.Binary) and _BINARY[left.operator] == COMPARISON:
                self._refuse_chain(left)
            return self._binary(left, start, word, strength)
        if token.kind != "word":
            return None
        if word in ("AND", "OR"):
            strength = AND if word == "AND" else OR
            return self._logical(left, start, word, strength) if strength >= weakest else None
        if word in ("IS", "ISNULL", "NOTNULL"):
            return self._is(left, start) if weakest <= IS else None
        if word == "COLLATE" and weakest <= COLLATE:
            self.advance()
            collation = self.dotted()
            return nodes.Collate(start, self.last_end, left, collation)
        if word == "AT" and self.ahead().upper == "TIME" and weakest <= ZONE:
            self._at += 2
            self.expect("ZONE")
            zone = self.expression(ZONE + 1)
            return nodes.AtTimeZone(start, self.last_end, left, zone)
        if word == "OPERATOR" and self.ahead().upper == "(" and weakest <= OTHER:
            return self._named_operator(left, start)
        return self._like_in_between(left, start) if weakest <= LIKE else None

    def _logical(self, left: Expression, start: int, word: str, strength: int) -> Expression:
        operands, spans = [left], [(start, self.last_end)]
        while self.token.upper == word:
            self.advance()
            begin = self.token.start
            operands.append(self.expression(strength + 1))
            spans.append((begin, self.last_end))
        # SQLite groups them from the left, and its trees have at most 1,000 levels.
        while len(operands) > _GROUP:
            groups = range(0, len(operands), _GROUP)
            ends = [min(at + _GROUP, len(operands)) for at in groups]
            spans = [(spans[at][0], spans[end - 1][1]) for at, end in zip(groups, ends, strict=True)]
            parts = [operands[at:end] for at, end in zip(groups, ends, strict=True)]
            operands = [nodes.Logical(*span, word, part) if len(part) > 1 else part[0] for span, part in zip(spans, parts, strict=True)]
        return nodes.Logical(start, self.last_end, word, operands)

    def _binary(self, left: Expression, start: int, operator: str, strength: int) -> Expression:
        at = self.advance()
        if self.token.upper in _QUANTIFIERS and self.ahead().upper == "(":
            return self._quantified(left, start, operator)
        operands, spans, places = [left], [(start, at.start)], [(at.start, at.end)]
        while True:
            begin = self.token.start
            operands.append(self.expression(strength + 1))
            spans.append((begin, self.last_end))
            if operator != "||" or self.token.upper != "||" or self.ahead().upper in _QUANTIFIERS:
                break
            at = self.advance()
            places.append((at.start, at.end))

        def grouped(low: int, high: int) -> Expression:
            """The operands from `low` to `high`. A long chain is balanced: SQLite's trees have at most 1,000 levels."""
            if high - low == 1:
                return operands[low]
            middle = high - 1 if len(operands) <= _LONGEST_CHAIN else (low + high) // 2
            return nodes.Binary(
                spans[low][0], spans[high - 1][1], operator, grouped(low, middle), grouped(middle, high), places[middle - 1]
            )

        return grouped(0, len(operands))

    def _named_operator(self, left: Expression, start: int) -> Expression:
        first = self.advance()
        self.expect("(")
        while self.ahead().upper == ".":
            self._at += 2
        operator = self.advance().text
        closing = self.expect(")")
        if operator not in _BINARY:
            raise self.not_understood()
        if self.token.upper in _QUANTIFIERS and self.ahead().upper == "(":
            return self._quantified(left, start, operator)
        right = self.expression(OTHER + 1)
        return nodes.Binary(start, self.last_end, operator, left, right, (first.start, closing.end))

    def _quantified(self, left: Expression, start: int, operator: str) -> Expression:
        quantifier = self.advance().upper
        self.expect("(")
        query = self.query_in_brackets() if self.begins_query() else None
        right = self.expression() if query is None else None
        self.expect(")")
        return nodes.Quantified(start, self.last_end, left, operator, "ANY" if quantifier == "SOME" else quantifier, right, query)

    def _subscript(self, left: Expression, start: int) -> Expression:
        self.expect("[")
        index = self.expression()
        self.expect("]")
        return nodes.Subscript(start, self.last_end, left, index)

    def _refuse_chain(self, left: Expression) -> None:
        """Raises SqlError 42601 if the operator before the present one, of the same strength, stands without brackets."""
        if not left.enclosed:
            token = self.token
            raise SqlError(
                "42601",
                f'syntax error at or near "{token.text}"',
                hint="These operators do not stand side by side. Put one of them in brackets.",
                position=token.start + 1,
            )

    def _is(self, left: Expression, start: int) -> Expression:
        if isinstance(left, nodes.IsTest) and left.other is not None:
            self._refuse_chain(left)
        word = self.advance().upper
        if word != "IS":
            return nodes.IsTest(start, self.last_end, left, "NULL", word == "NOTNULL")
        negated = self.accept("NOT")
        if self.token.upper in ("NULL", "TRUE", "FALSE", "UNKNOWN"):
            test = self.advance().upper
            return nodes.IsTest(start, self.last_end, left, test, negated)
        is_distinct = self.accept("DISTINCT", "FROM")
        other = self.expression(IS + 1)
        return nodes.IsTest(start, self.last_end, left, "DISTINCT" if is_distinct else "SAME", negated, other)

    def _like_in_between(self, left: Expression, start: int) -> Expression | None:
        negated = self.token.upper == "NOT"
        word = self.ahead(1 if negated else 0).upper
        if negated and word == "NULL":
            self._at += 2
            return nodes.IsTest(start, self.last_end, left, "NULL", True)
        if word not in ("IN", "BETWEEN", *_LIKES):
            return None
        if isinstance(left, nodes.Like | nodes.Between):
            self._refuse_chain(left)
        self._at += 2 if negated else 1
        if word == "IN":
            return self._in(left, start, negated)
        if word == "BETWEEN":
            symmetric = self.accept("SYMMETRIC")
            if not symmetric:
                self.accept("ASYMMETRIC")
            low = self.expression(LIKE + 1)
            self.expect("AND")
            high = self.expression(LIKE + 1)
            return nodes.Between(start, self.last_end, left, low, high, negated, symmetric)
        if word == "SIMILAR":
            self.expect("TO")
        if self.token.upper in _QUANTIFIERS and self.ahead().upper == "(":
            return self._quantified(left, start, ("NOT " if negated else "") + word)
        pattern = self.expression(LIKE + 1)
        escape = self.expression(LIKE + 1) if self.accept("ESCAPE") else None
        return nodes.Like(start, self.last_end, left, pattern, word, negated, escape)

    def _in(self, left: Expression, start: int, negated: bool) -> Expression:
        if self.token.upper != "(":
            table = self.dotted()
            return nodes.In(start, self.last_end, left, [], None, negated, table)
        self.advance()
        if self.begins_query():
            query = self.query_in_brackets()
            self.expect(")")
            return nodes.In(start, self.last_end, left, [], query, negated)
        if self.token.upper == ")":
            raise SqlError("42601", 'syntax error at or near ")"', hint="IN takes at least one value.", position=self.token.start + 1)
        items = self.expressions()
        self.expect(")")
        return nodes.In(start, self.last_end, left, items, None, negated)

    def expressions(self) -> list[Expression]:
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        return found

    # Primary expressions.

    def _prefix(self) -> Expression:
        token = self.token
        if token.kind == "word":
            return self._word()
        if token.kind == "number":
            self.advance()
            return nodes.Literal(token.start, token.end, "number", token.text)
        if token.kind == "string":
            self.advance()
            if token.text[0] in "xX":
                return nodes.Literal(token.start, token.end, "blob", token.text)
            return nodes.Literal(token.start, token.end, "string", token.string())
        if token.kind == "parameter":
            number = self._numbers.get(self._at)
            if number is None:
                raise self.not_understood()
            self.advance()
            return nodes.Parameter(token.start, token.end, number)
        if token.kind == "quoted":
            return self._reference()
        if token.upper == "(":
            return self._bracket()
        if token.upper == "*":
            self.advance()
            return nodes.Star(token.start, token.end, None)
        strength = _PREFIX.get(token.upper)
        if strength is None:
            raise self.not_understood()
        self.advance()
        operand = self.expression(strength)
        return nodes.Unary(token.start, self.last_end, token.upper, operand)

    def _bracket(self) -> Expression:
        start = self.token.start
        if self.begins_query(1) and self._is_query_bracket():
            self.advance()
            query = self.query_in_brackets()
            self.expect(")")
            return nodes.Subquery(start, self.last_end, query)
        self.advance()
        first = self.expression()
        if self.token.upper == ",":
            items = [first]
            while self.accept(","):
                items.append(self.expression())
            self.expect(")")
            return nodes.RowConstructor(start, self.last_end, items)
        self.expect(")")
        first.enclosed = True
        return first

    def _is_query_bracket(self) -> bool:
        """Whether brackets contain a query. ``((select 1) + 2)`` contains an expression, ``((select 1) union select 2)`` a query."""
        if self.ahead().upper != "(":
            return True
        depth, distance = 0, 1
        while True:
            token = self.ahead(distance)
            depth += (token.upper == "(") - (token.upper == ")")
            distance += 1
            if depth == 0 or token.kind == "end":
                break
        return self.ahead(distance).upper in (")", "UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT", "OFFSET", "FETCH")

    def _word(self) -> Expression:
        token = self.token
        word, after = token.upper, self.ahead()
        if word in ("NULL", "TRUE", "FALSE", "DEFAULT") and after.upper not in ("(", "."):
            self.advance()
            return nodes.Literal(token.start, token.end, word.lower(), token.text)
        if word == "NOT":
            self.advance()
            operand = self.expression(NOT)
            return nodes.Unary(token.start, self.last_end, "NOT", operand)
        if word == "CASE":
            return self._case()
        if after.upper == "(":
            if word == "CAST":
                return self._cast()
            if word == "EXISTS":
                return self._exists()
            if word == "ROW":
                self._at += 2
                items = [] if self.token.upper == ")" else self.expressions()
                self.expect(")")
                return nodes.RowConstructor(token.start, self.last_end, items, True)
        if word == "ARRAY" and after.upper in ("[", "("):
            return self._array()
        if word in MOMENTS:
            return self._moment()
        if word in _TYPED and self._types_string():
            kind = self.type_name()
            literal = self.advance()
            value = nodes.Literal(literal.start, literal.end, "string", literal.string())
            return nodes.Cast(token.start, self.last_end, value, kind, "typed")
        if word in _NOT_NAMES and after.upper != "(":
            raise self.not_understood()
        return self._reference()

    def _types_string(self) -> bool:
        """Whether a type and a string follow: ``date '…'``, ``timestamp with time zone '…'``."""
        distance = 1
        if self.ahead(distance).upper == "(":
            while self.ahead(distance).upper != ")" and self.ahead(distance).kind != "end":
                distance += 1
            distance += 1
        if self.ahead(distance).upper in ("WITH", "WITHOUT") and self.ahead(distance + 1).upper == "TIME":
            distance += 3
        elif self.token.upper == "DOUBLE" and self.ahead().upper == "PRECISION":
            distance += 1
        after = self.ahead(distance)
        return after.kind == "string" and after.text[0] not in "xX"

    def _moment(self) -> Expression:
        token = self.advance()
        precision = None
        if self.token.upper == "(" and self.ahead().kind == "number":
            self.advance()
            precision = int(self.advance().text)
            self.expect(")")
        return nodes.CurrentTime(token.start, self.last_end, token.text.lower(), precision)

    def _case(self) -> Expression:
        start = self.advance().start
        operand = None if self.token.upper == "WHEN" else self.expression()
        branches = []
        while self.accept("WHEN"):
            condition = self.expression()
            self.expect("THEN")
            branches.append((condition, self.expression()))
        otherwise = self.expression() if self.accept("ELSE") else None
        self.expect("END")
        if not branches:
            raise self.not_understood()
        return nodes.Case(start, self.last_end, operand, branches, otherwise)

    def _cast(self) -> Expression:
        start = self.advance().start
        self.expect("(")
        operand = self.expression()
        self.expect("AS")
        kind = self.type_name()
        self.expect(")")
        return nodes.Cast(start, self.last_end, operand, kind, "CAST")

    def _exists(self) -> Expression:
        start = self.advance().start
        self.expect("(")
        query = self.query_in_brackets()
        self.expect(")")
        return nodes.Exists(start, self.last_end, query)

    def _array(self) -> Expression:
        start = self.advance().start
        if self.accept("("):
            query = self.query_in_brackets()
            self.expect(")")
            return nodes.ArrayConstructor(start, self.last_end, [], query)
        return self._array_items(start)

    def _array_items(self, start: int) -> Expression:
        self.expect("[")
        items: list[Expression] = []
        while self.token.upper != "]":
            if items:
                self.expect(",")
            items.append(self._array_items(self.token.start) if self.token.upper == "[" else self.expression())
        self.expect("]")
        return nodes.ArrayConstructor(start, self.last_end, items, None)

    def _reference(self) -> Expression:
        name = self.dotted()
        if self.token.upper == "." and self.ahead().upper == "*":
            self._at += 2
            return nodes.Star(name.start, self.last_end, name)
        if self.token.upper == "(":
            return self._call(name)
        return nodes.ColumnRef(name.start, name.end, name)

    # Calls.

    def _call(self, name: Name) -> Expression:
        self.expect("(")
        for schema in name.parts[-2:-1]:
            check_schema(schema)
        if name.last in _MOMENT_CALLS and self.token.upper == ")" and not name.quoted:
            self.advance()
            return nodes.CurrentTime(name.start, self.last_end, name.last)
        call = nodes.Call(name.start, name.end, name, [])
        if self.accept("*"):
            call.is_star = True
        elif self.token.upper != ")":
            self._arguments(call)
        call.arguments_end = self.expect(")").start
        if self.accept("WITHIN", "GROUP"):
            self.expect("(")
            call.within = self.order_by()
            self.expect(")")
        if self.token.upper == "FILTER" and self.ahead().upper == "(":
            self._at += 2
            self.expect("WHERE")
            call.filter = self.expression()
            self.expect(")")
        if self.token.upper == "OVER":
            self.advance()
            call.is_window = True
            if self.token.upper == "(":
                call.window = self.window()
            else:
                self.identifier()
        call.end = self.last_end
        return call

    def _arguments(self, call: nodes.Call) -> None:
        called = call.name.last
        if called == "extract":
            field = self.advance()
            text = field.string() if field.kind == "string" else field.text.lower()
            call.arguments.append(nodes.Literal(field.start, field.end, "string", text))
            self.expect("FROM")
            call.words = ("FROM",)
            call.arguments.append(self.expression())
            return
        if called in ("trim", "position", "overlay", "substring"):
            self._standard_arguments(call)
            return
        call.is_distinct = self.accept("DISTINCT")
        if not call.is_distinct:
            self.accept("ALL")
        call.arguments = self.expressions()
        if self.token.upper == "ORDER":
            call.order = self.order_by()

    def _standard_arguments(self, call: nodes.Call) -> None:
        words: list[str] = []
        if call.name.last == "trim" and self.token.upper in ("BOTH", "LEADING", "TRAILING"):
            words.append(self.advance().upper)
        if self.token.upper == "FROM":
            words.append(self.advance().upper)
        call.arguments.append(self.expression(LIKE + 1 if call.name.last == "position" else OR))
        while self.token.upper in ("FROM", "FOR", "IN", "PLACING", ","):
            word = self.advance().upper
            if word != ",":
                words.append(word)
            call.arguments.append(self.expression())
        call.words = tuple(words)

    def window(self) -> nodes.WindowDefinition:
        start = self.expect("(").start
        partition: list[Expression] = []
        order: list[Sort] = []
        if self.token.kind in ("word", "quoted") and self.token.upper not in ("PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS"):
            self.advance()
        if self.accept("PARTITION", "BY"):
            partition = self.expressions()
        if self.token.upper == "ORDER":
            order = self.order_by()
        depth = 0
        while depth or self.token.upper != ")":
            depth += (self.token.upper == "(") - (self.token.upper == ")")
            if self.advance().kind in ("end", "parameter", "string"):
                raise self.not_understood()
        self.expect(")")
        return nodes.WindowDefinition(start, self.last_end, partition, order)

    def order_by(self) -> list[Sort]:
        self.expect("ORDER")
        self.expect("BY")
        found = [self.sort()]
        while self.accept(","):
            found.append(self.sort())
        return found

    def sort(self) -> Sort:
        start = self.token.start
        expression = self.expression()
        descending = False
        if self.token.upper in ("ASC", "DESC"):
            descending = self.advance().upper == "DESC"
        elif self.token.upper == "USING":
            self.advance()
            operator = self.advance().text
            if operator not in ("<", ">"):
                raise self.not_understood()
            raise self.not_understood()
        nulls = ""
        if self.token.upper == "NULLS" and self.ahead().upper in ("FIRST", "LAST"):
            self.advance()
            nulls = self.advance().upper
        return Sort(start, self.last_end, expression, descending, nulls)
