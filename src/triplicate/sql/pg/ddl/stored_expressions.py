"""Translates expressions of CHECK constraints, generated columns, indexes and defaults to plain SQLite, with PostgreSQL's meaning. Pure.

Tools without our SQL functions must be able to read the schema. An expression is therefore stored as its translation if that needs none of
them, which is the usual case. It is refused if plain SQLite would compute another value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from triplicate.errors import SqlError
from triplicate.sql.core.declared_types import Kind, parse_declared
from triplicate.sql.core.lexer import quote, statement_of
from triplicate.sql.pg.ddl.parts import TextEdits, Tokens, closing, constant_casts, refuse
from triplicate.sql.pg.translate.target_context import TargetContext
from triplicate.sql.pg.translate.translation import translate
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import SHOWN, WRITTEN_OTHERWISE

_TABLE = "t"
_TEXTS = (Kind.TEXT, Kind.VARCHAR)
_OURS = re.compile(r"\btriplicate_(\w+)")
_SHOWN = {
    "numeric_divide": "a division of numerics",
    "numeric_multiply": "arithmetic of numerics",
    "numeric_add": "arithmetic of numerics",
    "numeric_subtract": "arithmetic of numerics",
    "numeric_remainder": "arithmetic of numerics",
    "numeric_order": "arithmetic of numerics",
    "divisor": "a division by a value that may be zero",
    "quotient": "a division by a value that may be zero",
    "remainder": "a division by a value that may be zero",
    "glob": "LIKE with a pattern that is not a constant",
    "matches": "a regular expression",
    "json_part_text": "->>",
    "date_add": "arithmetic of dates",
    "date_difference": "arithmetic of dates",
}
_HINT = "Plain SQLite must be able to read a definition, and cannot compute this. Compute it in the statements that change rows."


class StoredExpressions:
    """Translates the expressions of one table.

    Args:
        columns: name and declared type of each column.
    """

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        self._tables = ((_TABLE, tuple(columns)),)

    def rewrite(self, tokens: Tokens, edits: TextEdits, *, is_condition: bool) -> None:
        """Replace a bracketed expression by its translation.

        Args:
            is_condition: whether it is the condition of a CHECK, whose value is not stored.

        Raises:
            SqlError: as `translate`; 0A000 if plain SQLite would compute another value.
        """
        if not self.rewrite_span(tokens[0].end, tokens[-1].start, edits, is_condition=is_condition):
            constant_casts(tokens, edits)

    def rewrite_span(self, start: int, end: int, edits: TextEdits, *, is_condition: bool) -> bool:
        """Replace an expression by its translation. Returns False if it stays as it is written. Raises as `rewrite`.

        Args:
            start, end: positions in the text of `edits`.
        """
        # The newline ends a comment at the end of the expression.
        head, tail = "SELECT ", f"\n FROM {quote(_TABLE)}"
        context = TargetContext.CONDITION if is_condition else TargetContext.STORED
        translation = translate(statement_of(f"{head}{edits.sql[start:end]}{tail}"), self._tables, context=context)
        if not translation.is_understood or not translation.sql.endswith(tail):
            return False
        if translation.parameter_oids or translation.supplied:
            raise refuse("a parameter, the user or, but for CHECK, the current time in a definition", _HINT)
        _refuse_ours(translation.sql)
        edits.replace(start, end, translation.sql[len(head) : -len(tail)])
        return True


def stored_default_expression(text: str, declared: str) -> str | None:
    """The translation of a default that is no constant; None if it stays as it is written.

    Args:
        declared: the type of its column.

    Raises:
        SqlError: as `translate`; 0A000 if plain SQLite would compute another value, or the value depends on the session; 42804 if SQLite
            would store the value otherwise than PostgreSQL.
    """
    translation = translate(statement_of(f"SELECT {text}\n"), context=TargetContext.STORED)
    if not translation.is_understood or translation.outputs is None:
        return None
    if translation.parameter_oids or translation.supplied:
        raise refuse("a value of the session in a default", "Write it in the statements that insert rows.")
    _refuse_ours(translation.sql)
    kind, source = parse_declared(declared).kind, translation.outputs[0][1]
    if (kind in _TEXTS and source in WRITTEN_OTHERWISE) or (kind is Kind.INTEGER and source in (types.FLOAT8, types.NUMERIC)):
        shown = SHOWN.get(source or 0, "unknown")
        raise SqlError("42804", f"a column of type {declared.lower()} cannot have a default of type {shown}", hint="Cast it: value::type.")
    return f"({translation.sql.removeprefix('SELECT ').rstrip()})"


def _refuse_ours(sql: str) -> None:
    needed = set(_OURS.findall(sql))
    if needed:
        subject = next((_SHOWN[name] for name in sorted(needed) if name in _SHOWN), "this expression")
        raise refuse(f"{subject} in a definition", _HINT)


def expression_of(tokens: Tokens) -> Tokens:
    """The bracketed expression after CHECK or AS.

    Raises:
        SqlError: 42601 if there is none.
    """
    opening = next((index for index, token in enumerate(tokens) if token.text == "("), None)
    if opening is None:
        raise SqlError("42601", "syntax error at end of input: an expression in brackets is missing")
    return tokens[opening : closing(tokens, opening) + 1]
