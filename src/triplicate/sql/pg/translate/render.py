"""Renders the text for SQLite: the client's text, changed only where SQLite would parse or compute something else. Pure.

Parameters become ``?1``. Casts become our SQL functions (`triplicate.sql.executor.scalars`) or are removed. Constants become values of the
types that their contexts require. Brackets are added where the two databases group operators differently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.core.lexer import ComposedText, quote_string
from triplicate.sql.pg.analysis.scales import scale_of
from triplicate.sql.pg.syntax import dml_nodes, nodes
from triplicate.sql.pg.syntax.nodes import Expression, SyntaxNode
from triplicate.sql.pg.translate.target_context import TargetContext
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.array_parameters import ELEMENT_OF, read_array
from triplicate.sql.pg.values.conversions import (
    CAST_NAMES,
    INTEGERS,
    TEXTS,
    convert,
    decimal_of,
    stored_numeric,
    type_of_name,
    value_of_decimal,
)
from triplicate.sql.pg.values.datetimes import NOW, NOW_IN_CHECK
from triplicate.sql.pg.values.patterns import check_escape, glob_of_like

OURS = "triplicate_"
_SCHEMAS = ("public", "pg_catalog")

# SQLite's precedences, the lowest first: OR, AND, NOT, = IS IN LIKE, < >, & | << >>, + -, * / %, || ->, COLLATE, ~ -.
_SQLITE = {
    "OR": 1, "AND": 2, "=": 4, "==": 4, "<>": 4, "!=": 4, "<": 5, ">": 5, "<=": 5, ">=": 5, "&": 6, "|": 6, "<<": 6, ">>": 6, "+": 7,
    "-": 7, "*": 8, "/": 8, "%": 8, "||": 9, "->": 9, "->>": 9, "~~": 4, "~~*": 4, "!~~": 4, "!~~*": 4,
}  # fmt: skip
_TIGHTEST = 20
_HEX_CHARACTERS = 18
"""Length of the longest hexadecimal constant, which has 64 bits."""


def sqlite_strength(node: SyntaxNode) -> int:
    """SQLite's precedence of the outermost operator of an expression without brackets."""
    match node:
        case nodes.Literal():  # The most frequent one by far in a long INSERT.
            return _TIGHTEST
        case nodes.Binary():
            return _SQLITE.get(node.operator, _TIGHTEST)
        case nodes.Logical():
            return _SQLITE[node.operator]
        case nodes.Unary():
            return 3 if node.operator == "NOT" else 11
        case nodes.IsTest() | nodes.Between() | nodes.Like() | nodes.In() | nodes.Quantified():
            return 4
        case nodes.Collate():
            return 10
    return _TIGHTEST


def is_json_path(text: str) -> bool:
    """Whether the right side of ``->`` is a JSON path in SQLite's syntax."""
    return text.startswith(("$.", "$["))


def literal_text(value: Value) -> str:
    """A value as a literal of SQLite. Raises SqlError 0A000 for NaN."""
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(int(value))
        case float():
            if value != value:
                raise SqlError("0A000", "NaN cannot be stored", hint="NULL stands for no number.")
            if value in (float("inf"), float("-inf")):
                return "9e999" if value > 0 else "-9e999"
            return repr(value)
        case str():
            return quote_string(value)
        case _:
            return f"x'{value.hex()}'"


class Renderer:
    """Renders one statement.

    Args:
        source: its text as the client sent it.
        first_supplied: the number of the first parameter that the session supplies.
        context: the use of the text.
    """

    def __init__(self, source: str, first_supplied: int, context: TargetContext = TargetContext.STATEMENT) -> None:
        self.pieces = ComposedText(source)
        self.context = context
        self.supplied: dict[tuple[str, int, int | None], int] = {}
        """Maps (kind: ``transaction``, ``statement``, ``user``, ``session_user``; type; digits of the second) to a parameter's number."""
        self.lock = ""
        self._source = source
        self._next_supplied = first_supplied
        self._rules: dict[type, Callable[[Any], None]] = {
            nodes.Literal: self._literal,
            nodes.Parameter: self._parameter,
            nodes.CurrentTime: self._moment,
            nodes.ColumnRef: self._column,
            nodes.Star: self._star,
            nodes.Unary: self._unary,
            nodes.Binary: self._binary,
            nodes.Like: self._like,
            nodes.IsTest: self._is_test,
            nodes.Between: self._between,
            nodes.Quantified: self._quantified,
            nodes.Cast: self._cast,
            nodes.AtTimeZone: self._at_time_zone,
            nodes.Collate: self._collate,
            nodes.RowConstructor: self._row,
            nodes.Call: self._call,
            nodes.Sort: self._sort,
            nodes.FromItem: self._from,
            nodes.QueryExpression: self._query,
            nodes.Compound: self._compound,
            nodes.With: self._with,
            nodes.Subquery: self._subquery,
            nodes.LimitClause: self._limits,
            nodes.SelectItem: self._item,
            dml_nodes.InsertStatement: self._insert,
            dml_nodes.UpdateStatement: self._update,
            dml_nodes.DeleteStatement: self._delete,
            dml_nodes.Conflict: self._conflict,
        }

    # Writing.

    def write(self, node: SyntaxNode) -> None:
        """Render a node, with the conversion that its context requires."""
        if isinstance(node, Expression) and node.is_trimmed:
            node.is_trimmed = False
            if isinstance(node, nodes.Literal) and node.kind == "string":
                self.add(quote_string(node.value.rstrip(" ")), node)
            else:
                self.call("rtrim", node, node, "' '")
            return
        if isinstance(node, Expression) and node.as_oid is not None and not isinstance(node, nodes.Literal | nodes.CurrentTime):
            self.converted(node, node.as_oid, node.as_modifiers)
            return
        if isinstance(node, Expression) and node.is_ordered:
            node.is_ordered = False
            self.add("((", node)
            self.write(node)
            self.add(") + 0)", node)
            return
        if isinstance(node, Expression) and node.is_checked:
            node.is_checked = False
            self.call(OURS + "whole", node, node)
            node.is_checked = True
            return
        rule = self._rules.get(type(node))
        if rule is None:
            self.verbatim(node)
        else:
            rule(node)

    def verbatim(self, node: SyntaxNode) -> None:
        """Copy a node's text, with its parts rendered."""
        at = node.start
        strength = sqlite_strength(node)
        for index, child in enumerate(node.children()):
            self.pieces.copy(at, child.start)
            self.part(child, strength, is_right=index > 0)
            at = child.end
        self.pieces.copy(at, node.end)

    def part(self, child: SyntaxNode, strength: int, *, is_right: bool) -> None:
        """Render an operand, in brackets if SQLite would group it differently."""
        inner = sqlite_strength(child)
        enclosed = not isinstance(child, Expression) or child.enclosed or inner == _TIGHTEST or strength == _TIGHTEST
        if enclosed or inner > strength or (inner == strength and not is_right):
            self.write(child)
            return
        self.add("(", child)
        self.write(child)
        self.add(")", child)

    def operand(self, child: Expression, strength: int, *, is_right: bool) -> None:
        """As `part`, for a child whose surrounding text, including its brackets, is not copied."""
        inner = sqlite_strength(child)
        if inner == _TIGHTEST or inner > strength or (inner == strength and not is_right):
            self.write(child)
            return
        self.add("(", child)
        self.write(child)
        self.add(")", child)

    def add(self, text: str, node: SyntaxNode) -> None:
        self.pieces.add(text, node.start)

    def call(self, name: str, node: SyntaxNode, *arguments: SyntaxNode | str) -> None:
        """Render a call, with nodes or texts as arguments."""
        self.add(f"{name}(", node)
        for index, argument in enumerate(arguments):
            if index:
                self.add(", ", node)
            if isinstance(argument, str):
                self.add(argument, node)
            else:
                self.write(argument)
        self.add(")", node)

    def replaced(self, node: SyntaxNode, parts: list[tuple[int, int, str]]) -> None:
        """As `verbatim`, with some of the text between the parts replaced.

        Args:
            parts: (start, end, new text) of each replacement, in order.
        """
        at = node.start
        cuts = iter([*parts, (node.end + 1, node.end + 1, "")])
        start, end, text = next(cuts)
        strength = sqlite_strength(node)
        for index, child in enumerate(node.children()):
            while start <= child.start:
                self.pieces.copy(at, start)
                self.pieces.add(text, start)
                at = end
                start, end, text = next(cuts)
            self.pieces.copy(at, child.start)
            self.part(child, strength, is_right=index > 0)
            at = child.end
        while start <= node.end:
            self.pieces.copy(at, start)
            self.pieces.add(text, start)
            at = end
            start, end, text = next(cuts)
        self.pieces.copy(at, node.end)

    # Leaves.

    def _literal(self, node: nodes.Literal) -> None:
        if node.kind == "default":
            raise SqlError("0A000", "DEFAULT is not available here", hint="Leave the column out, or write its value.")
        if node.as_oid is not None and node.kind in ("string", "number", "true", "false"):
            if node.as_oid in ELEMENT_OF:
                raise SqlError("0A000", "arrays are available in = ANY (…) and <> ALL (…) only")
            self._constant(node, node.as_oid, node.as_modifiers)
        elif node.kind == "string":
            self.add(quote_string(node.value), node)
        elif node.kind == "number" and node.oid == types.NUMERIC:
            self.add(literal_text(value_of_decimal(decimal_of(node.value.replace("_", "")))), node)
        else:
            self.verbatim(node)

    def _parameter(self, node: nodes.Parameter) -> None:
        self.add(f"?{node.number}", node)

    def _moment(self, node: nodes.CurrentTime) -> None:
        oid = node.as_oid or node.oid or types.TIMESTAMPTZ
        if oid in TEXTS or node.oid == types.DATE != oid:
            # The text of a timestamp differs from its stored form, and a date as a timestamp is its midnight.
            node.as_oid = None
            self.converted(node, oid)
            return
        which = {"clock_timestamp": "statement", "statement_timestamp": "statement"}.get(node.name, "transaction")
        self.supply((which, oid, node.precision), node)

    def supply(self, key: tuple[str, int, int | None], node: SyntaxNode) -> None:
        """Render a parameter that the session supplies; in a definition, SQLite's own words for the time."""
        words = NOW if self.context.is_without_session else NOW_IN_CHECK if self.context is TargetContext.CONDITION else {}
        if key[2] is None and key[1] in words:
            self.add(words[key[1]], node)
            return
        if key not in self.supplied:
            self.supplied[key] = self._next_supplied
            self._next_supplied += 1
        self.add(f"?{self.supplied[key]}", node)

    def _column(self, node: nodes.ColumnRef) -> None:
        if node.session_name in ("current_schema", "current_catalog"):
            self.add("current_schema()" if node.session_name == "current_schema" else "current_database()", node)
            return
        if node.session_name:
            self.supply(("session_user" if node.session_name == "session_user" else "user", types.TEXT, None), node)
            return
        if node.qualifier:
            self.add(node.qualifier + ".", node)
        self.name(node.name)

    def name(self, name: nodes.Name) -> None:
        """Render a name without its schema, which is the only one."""
        if len(name.parts) > 1 and name.parts[0] in _SCHEMAS:
            self.pieces.copy(name.spans[1][0], name.end)
        else:
            self.pieces.copy(name.start, name.end)

    def _star(self, node: nodes.Star) -> None:
        if node.expansion is not None:
            self.add(", ".join(node.expansion), node)
        elif node.qualifier is None:
            self.add("*", node)
        else:
            start = node.start
            if len(node.qualifier.parts) > 1 and node.qualifier.parts[0] in _SCHEMAS:
                start = node.qualifier.spans[1][0]
            self.pieces.copy(start, node.end)

    # Operators.

    def _unary(self, node: nodes.Unary) -> None:
        if node.operator == "-" and isinstance(node.operand, nodes.Literal) and node.operand.kind == "number":
            # The sign becomes part of the constant; otherwise the smallest integer is out of range.
            text = node.operand.value.replace("_", "")
            if not text.lower().startswith("0x"):
                value, oid = value_of_decimal(decimal_of(text).copy_negate()), node.operand.as_oid
                self.add(literal_text(value if oid is None else convert(value, node.oid, oid, ())), node)
                return
        if node.operator == "-" and node.oid == types.NUMERIC:
            self.call(OURS + "numeric_subtract", node, "0", node.operand)
            return
        self.verbatim(node)

    def _binary(self, node: nodes.Binary) -> None:
        operator = node.operator
        if operator in ("/", "%", "^") or (operator in ("+", "-", "*") and node.oid in (types.NUMERIC, types.FLOAT4, types.FLOAT8)):
            self._arithmetic(node)
        elif types.DATE in (node.left.oid, node.right.oid) and operator in ("+", "-"):
            function = "date_difference" if node.oid == types.INT8 else "date_add"
            amount = node.left if node.right.oid == types.DATE and function == "date_add" else node.right
            date = node.right if amount is node.left else node.left
            self.call(OURS + function, node, date, amount, *([] if function == "date_difference" else [f"{operator}1"]))
        elif operator in ("~", "~*", "!~", "!~*"):
            self.add("(NOT " if operator[0] == "!" else "(", node)
            self.call(OURS + "matches", node, node.left, node.right, "1" if operator[-1] == "*" else "0")
            self.add(")", node)
        elif operator in ("~~", "~~*", "!~~", "!~~*"):
            self._pattern(node, node.left, node.right, None, ignores_case=operator[-1] == "*", negated=operator[0] == "!")
        elif operator in ("->", "->>") and not (isinstance(node.right, nodes.Literal) and is_json_path(node.right.value)):
            self._json_part(node)
        elif operator == "||" and node.oid == types.BYTEA:
            self.add("CAST(", node)
            self.verbatim(node)
            self.add(" AS BLOB)", node)
        elif self._source[node.at[0]] in "oO":
            self.replaced(node, [(node.at[0], node.at[1], operator)])
        else:
            self.verbatim(node)

    def _json_part(self, node: nodes.Binary) -> None:
        """Render an element of JSON. SQLite's operator takes a key that begins with $ for a path, and finds none with a quote."""
        key = node.right
        if node.operator == "->>" or self.context.calls_ours:
            function = OURS + ("json_part_text" if node.operator == "->>" else "json_part")
            self.call(function, node, node.left, key, "1" if node.left.oid == types.JSONB else "0")
            return
        if isinstance(key, nodes.Literal) and key.kind == "string" and (not key.value or set(key.value) & set('$"\\')):
            raise SqlError("0A000", f"-> with the key {key.value!r} is not available in a definition", hint="Compute it in the query.")
        self.verbatim(node)

    def _like(self, node: nodes.Like) -> None:
        if node.kind in ("LIKE", "ILIKE"):
            self._pattern(node, node.operand, node.pattern, node.escape, ignores_case=node.kind == "ILIKE", negated=node.negated)
        else:
            self.verbatim(node)

    def _pattern(
        self, node: SyntaxNode, operand: Expression, pattern: Expression, escape: Expression | None, *, ignores_case: bool, negated: bool
    ) -> None:
        """Render LIKE as GLOB, which is case-sensitive and can use an index, and ILIKE as LIKE, which folds A to Z as locale C does."""
        character = "\\"
        if isinstance(escape, nodes.Literal) and escape.kind == "string":
            character, escape = escape.value, None
            check_escape(character)
        self.operand(operand, 4, is_right=False)
        self.add(" NOT" if negated else "", node)
        if escape is not None:
            self.add(" LIKE " if ignores_case else " GLOB ", pattern)
            if not ignores_case:
                self.call(OURS + "glob", pattern, pattern, escape)
                return
            self.operand(pattern, 4, is_right=True)
            self.add(" ESCAPE ", escape)
            self.operand(escape, 4, is_right=True)
            return
        if isinstance(pattern, nodes.Literal) and pattern.kind == "string":
            glob = glob_of_like(pattern.value, character)
            if not ignores_case:
                self.add(f" GLOB {quote_string(glob)}", pattern)
                return
            self.add(f" LIKE {quote_string(pattern.value)}", pattern)
        elif not ignores_case:
            self.add(" GLOB ", pattern)
            self.call(OURS + "glob", pattern, pattern, quote_string(character))
            return
        else:
            self.add(" LIKE ", pattern)
            self.operand(pattern, 4, is_right=True)
        if character:
            self.add(f" ESCAPE {quote_string(character)}", node)

    def _is_test(self, node: nodes.IsTest) -> None:
        if isinstance(node.operand, nodes.RowConstructor) and node.test == "NULL":
            # A row is NULL if all its fields are NULL, and NOT NULL if none is.
            for index, item in enumerate(node.operand.items):
                self.add(" AND " if index else "(", node)
                self.operand(item, 4, is_right=False)
                self.add(" IS NOT NULL" if node.negated else " IS NULL", node)
            self.add(")", node)
        elif node.test == "UNKNOWN":
            self.operand(node.operand, 4, is_right=False)
            self.add(" IS NOT NULL" if node.negated else " IS NULL", node)
        else:
            self.verbatim(node)

    def _between(self, node: nodes.Between) -> None:
        if not node.symmetric:
            self.verbatim(node)
            return
        raise SqlError("0A000", "BETWEEN SYMMETRIC is not available", hint="Write (x BETWEEN a AND b OR x BETWEEN b AND a).")

    def _quantified(self, node: nodes.Quantified) -> None:
        self.operand(node.left, 4, is_right=False)
        self.add(" NOT IN (" if node.quantifier == "ALL" else " IN (", node)
        if node.query is not None:
            self.write(node.query)
        elif isinstance(node.right, nodes.ArrayConstructor):
            for index, item in enumerate(node.right.items):
                self.add(", " if index else "", node)
                self.write(item)
        else:
            assert node.right is not None, "there is either a query or an array"
            self._elements(node.right)
        self.add(")", node)

    def _elements(self, array: Expression) -> None:
        operand = array.operand if isinstance(array, nodes.Cast) else array
        element = ELEMENT_OF[array.oid or 0]
        if isinstance(operand, nodes.ArrayConstructor):
            for index, item in enumerate(operand.items):
                self.add(", " if index else "", array)
                self.write(item)
        elif isinstance(operand, nodes.Literal):
            if operand.kind == "null":
                self.add("NULL", operand)
                return
            self.add(", ".join(literal_text(value) for value in read_array(operand.value, element)), operand)
        elif isinstance(operand, nodes.Parameter) and operand.oid in ELEMENT_OF:
            # A NULL array makes the comparison unknown, as a list of one NULL does.
            value = "unhex(value)" if element == types.BYTEA else "value"
            self.add(f"SELECT {value} FROM json_each(coalesce(?{operand.number}, '[null]'))", operand)
        else:
            raise SqlError("0A000", "ANY and ALL take an array parameter, a constant, ARRAY[…] or a subquery")

    # Conversions.

    def converted(self, node: Expression, oid: int, modifiers: tuple[int, ...] = ()) -> None:
        """Render a call of the function that converts the node's value to a type."""
        as_oid, node.as_oid = node.as_oid, None
        if oid == types.FLOAT8 and node.oid in INTEGERS:
            self.add("CAST(", node)
            self.write(node)
            self.add(" AS REAL)", node)
            node.as_oid = as_oid
            return
        scale = scale_of(node) if oid in TEXTS and node.oid == types.NUMERIC else None
        if scale:
            self.add(f"{OURS}to_{CAST_NAMES[oid]}(" if modifiers else "", node)
            self.call(OURS + "numeric_text", node, node, str(scale))
            self.add(", ".join(["", str(types.TEXT), *map(str, modifiers)]) + ")" if modifiers else "", node)
            node.as_oid = as_oid
            return
        name = OURS + ("stored_numeric" if node.is_stored and oid == types.NUMERIC else "to_" + CAST_NAMES[oid])
        self.call(name, node, node, str(node.oid or 0), *map(str, modifiers))
        node.as_oid = as_oid

    def _cast(self, node: nodes.Cast) -> None:
        if node.type.dimensions:
            raise SqlError("0A000", "arrays are available in = ANY (…) and <> ALL (…) only")
        oid, modifiers = type_of_name(node.type)
        operand = node.operand
        if node.type.name == "blob" and node.form == "CAST":
            self.verbatim(node)
            return
        if isinstance(operand, nodes.Literal) and operand.kind in ("string", "number"):
            self._constant(operand, oid, modifiers)
            return
        if isinstance(operand, nodes.Literal) and operand.kind == "null":
            self.add("NULL", node)
            return
        if isinstance(operand, nodes.CurrentTime) and oid in (types.DATE, types.TIME, types.TIMESTAMP, types.TIMESTAMPTZ) and not modifiers:
            operand.as_oid = oid
            self.write(operand)
            return
        same = operand.oid == oid or (operand.oid in TEXTS and oid in TEXTS)
        if same and not modifiers and operand.as_oid is None and isinstance(operand, nodes.Parameter | nodes.Cast | nodes.ColumnRef):
            self.write(operand)
            return
        native = {types.FLOAT8: "REAL", types.TEXT: "TEXT"}.get(oid) if operand.oid in INTEGERS and not modifiers else None
        if native is not None and operand.as_oid is None:
            self.add("CAST(", node)
            self.write(operand)
            self.add(f" AS {native})", node)
            return
        self.converted(operand, oid, modifiers)

    def _constant(self, node: nodes.Literal, oid: int, modifiers: tuple[int, ...]) -> None:
        """Render a constant that is converted to a type in advance."""
        value: Value = node.value
        source = node.oid
        if node.kind == "number":
            text = node.value.replace("_", "")
            if text.lower().startswith("0x"):
                if len(text) > _HEX_CHARACTERS:
                    raise SqlError("22003", f"hex literal too big: {text[:40]}")
                value = int(text, 16)
            else:
                value = f"{decimal_of(text):f}" if oid in TEXTS else value_of_decimal(decimal_of(text))
        elif node.kind in ("true", "false"):
            value, source = int(node.kind == "true"), types.BOOL
        elif node.kind == "string":
            source = None
        converted = convert(value, source, oid, modifiers)
        self.add(literal_text(stored_numeric(converted) if node.is_stored and oid == types.NUMERIC else converted), node)

    def _at_time_zone(self, node: nodes.AtTimeZone) -> None:
        target = types.TIMESTAMP if node.oid == types.TIMESTAMP else types.TIMESTAMPTZ
        if isinstance(node.operand, nodes.CurrentTime):
            node.operand.as_oid = target
            self.write(node.operand)
        else:
            self.converted(node.operand, target)

    def _collate(self, node: nodes.Collate) -> None:
        name = node.collation.last.lower()
        if name in ("c", "posix", "default", "ucs_basic"):
            self.replaced(node, [(node.collation.start, node.collation.end, "BINARY")])
        else:
            self.verbatim(node)

    def _row(self, node: nodes.RowConstructor) -> None:
        if node.is_explicit:
            self.replaced(node, [(node.start, node.start + 3, "")])
        else:
            self.verbatim(node)

    # The subclasses render these.

    def _arithmetic(self, node: nodes.Binary) -> None:
        raise NotImplementedError

    def _call(self, node: nodes.Call) -> None:
        raise NotImplementedError

    def _sort(self, node: nodes.Sort) -> None:
        raise NotImplementedError

    def _from(self, node: nodes.FromItem) -> None:
        raise NotImplementedError

    def _query(self, node: nodes.QueryExpression) -> None:
        raise NotImplementedError

    def _compound(self, node: nodes.Compound) -> None:
        raise NotImplementedError

    def _with(self, node: nodes.With) -> None:
        raise NotImplementedError

    def _subquery(self, node: nodes.Subquery) -> None:
        raise NotImplementedError

    def _limits(self, node: nodes.LimitClause) -> None:
        raise NotImplementedError

    def _item(self, node: nodes.SelectItem) -> None:
        raise NotImplementedError

    def _insert(self, node: dml_nodes.InsertStatement) -> None:
        raise NotImplementedError

    def _update(self, node: dml_nodes.UpdateStatement) -> None:
        raise NotImplementedError

    def _delete(self, node: dml_nodes.DeleteStatement) -> None:
        raise NotImplementedError

    def _conflict(self, node: dml_nodes.Conflict) -> None:
        raise NotImplementedError
