"""Expressions of CHECK constraints, generated columns and indexes: PostgreSQL's meaning in the words of plain SQLite. Pure.

Tools that have none of our functions read the schema. So an expression is stored as its translation where that needs no such
function, which is nearly always. It is refused where SQLite alone would compute another value.
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
    "divisor": "a division by what may be zero",
    "quotient": "a division by what may be zero",
    "remainder": "a division by what may be zero",
    "glob": "LIKE with a pattern that is no constant",
    "matches": "a regular expression",
    "json_text": "->>",
    "date_add": "arithmetic of dates",
    "date_difference": "arithmetic of dates",
}
_HINT = "Plain SQLite must be able to read a definition, and has nothing of this meaning. Compute it in the statements that change rows."


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
            is_condition: of CHECK, whose value is not stored.

        Raises:
            SqlError: as `translate`; 0A000 where SQLite alone would compute another value.
        """
        if not self.rewrite_span(tokens[0].end, tokens[-1].start, edits, is_condition=is_condition):
            constant_casts(tokens, edits)

    def rewrite_span(self, start: int, end: int, edits: TextEdits, *, is_condition: bool) -> bool:
        """Put the translation of an expression in its place; False where it stays as it is written. As `rewrite`."""
        # The line's end closes a comment of the expression.
        head, tail = "SELECT ", f"\n FROM {quote(_TABLE)}"
        place = TargetContext.CONDITION if is_condition else TargetContext.STORED
        found = translate(statement_of(f"{head}{edits.sql[start:end]}{tail}"), self._tables, place=place)
        if not found.is_understood or found.parameter_oids or found.supplied or not found.sql.endswith(tail):
            return False
        needed = set(_OURS.findall(found.sql))
        if needed:
            subject = next((_SHOWN[name] for name in sorted(needed) if name in _SHOWN), "what this expression computes")
            raise refuse(f"{subject}, inside of a definition,", _HINT)
        edits.replace(start, end, found.sql[len(head) : -len(tail)])
        return True


def expression_of(tokens: Tokens) -> Tokens:
    """The bracketed expression after CHECK or AS.

    Raises:
        SqlError: 42601, there is none.
    """
    opening = next((index for index, token in enumerate(tokens) if token.text == "("), None)
    if opening is None:
        raise SqlError("42601", "syntax error at end of input: an expression in brackets is missing")
    return tokens[opening : closing(tokens, opening) + 1]
