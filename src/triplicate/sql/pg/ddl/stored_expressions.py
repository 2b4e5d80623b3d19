"""Translates the expressions of CHECK constraints, generated columns and indexes to plain SQLite, with PostgreSQL's meaning. Pure.

Tools without our SQL functions must be able to read the schema. An expression is therefore stored as its translation if that needs none of
them, which is the usual case. It is refused if plain SQLite would compute another value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import quote, statement_of
from triplicate.sql.pg.ddl.parts import TextEdits, Tokens, closing, constant_casts, refuse
from triplicate.sql.pg.translate.render import TargetContext
from triplicate.sql.pg.translate.translation import translate

_TABLE = "t"
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
        if not translation.is_understood or translation.parameter_oids or translation.supplied or not translation.sql.endswith(tail):
            return False
        needed = set(_OURS.findall(translation.sql))
        if needed:
            subject = next((_SHOWN[name] for name in sorted(needed) if name in _SHOWN), "this expression")
            raise refuse(f"{subject} in a definition", _HINT)
        edits.replace(start, end, translation.sql[len(head) : -len(tail)])
        return True


def expression_of(tokens: Tokens) -> Tokens:
    """The bracketed expression after CHECK or AS.

    Raises:
        SqlError: 42601 if there is none.
    """
    opening = next((index for index, token in enumerate(tokens) if token.text == "("), None)
    if opening is None:
        raise SqlError("42601", "syntax error at end of input: an expression in brackets is missing")
    return tokens[opening : closing(tokens, opening) + 1]
