"""Expressions as PostgreSQL prints them from its catalogue, without the casts that say no more than the types of their operands. Pure.

PostgreSQL prints ``status IN ('new', 'old')`` of a varchar as ``((status)::text = ANY ((ARRAY['new'::character varying, 'old'::character
varying])::text[]))``. Source: ``ruleutils.c``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from triplicate.sql.core.lexer import Statement, Token, statement_of
from triplicate.sql.pg.ddl.parts import TextEdits, Tokens, at, type_end, type_text

_TEXTS = frozenset(("text", "character varying", "varchar", "bpchar", "pg_catalog.text"))


def is_text_type(declared: str) -> bool:
    """Whether a declared type is one of texts, with or without a length."""
    return declared.partition("(")[0].strip().lower() in _TEXTS | {"character", "char"}


def without_plain_casts(statement: Statement, text_columns: Collection[str] = ()) -> Statement:
    """The statement without casts of constants, of arrays of constants, and of columns of texts, to text.

    Args:
        text_columns: names of columns that hold texts.
    """
    if "::" not in statement.sql:
        return statement
    edits, tokens = TextEdits(statement.sql), statement.tokens
    for index, end in _text_casts(tokens):
        before = tokens[index - 1]
        if before.kind == "string" and before.text[0] in "'eE":
            edits.remove(tokens[index:end])
        elif before.text == ")" and (opening := _opening(tokens, index - 1)) >= 0:
            inner = tokens[opening + 1 : index - 1]
            if (_is_array(inner) and at(tokens, end).text == ")" and at(tokens, opening - 1).text == "(") or (
                len(inner) == 1 and inner[0].name in text_columns
            ):
                edits.remove([tokens[opening]])
                edits.remove(tokens[index - 1 : end])
    return statement_of(edits.text()) if edits.edits else statement


def _text_casts(tokens: Tokens) -> Iterator[tuple[int, int]]:
    """(index of ``::``, index after the type) of each cast to text or to an array of texts."""
    for index, token in enumerate(tokens):
        if token.text == "::" and index > 0:
            end = type_end(tokens, index + 1)
            if type_text(tokens[index + 1 : end]).lower().removesuffix("[]").strip() in _TEXTS:
                yield index, end


def _opening(tokens: Tokens, closed: int) -> int:
    """The index of the bracket that is closed at an index; -1 if none is."""
    depth = 0
    for index in range(closed, -1, -1):
        depth += (tokens[index].text == ")") - (tokens[index].text == "(")
        if depth == 0:
            return index
    return -1


def _is_array(tokens: Tokens) -> bool:
    return at(tokens, 0).upper == "ARRAY" and at(tokens, 1).text == "[" and _last(tokens).text == "]"


def _last(tokens: Tokens) -> Token:
    return at(tokens, len(tokens) - 1)
