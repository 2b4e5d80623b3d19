"""PostgreSQL's words for what a definition of a table or an index has in SQLite's words. Pure.

`triplicate.sql.pg.ddl` stores expressions so that plain SQLite computes them. Some of these have no or another meaning in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.errors import ArgumentError
from triplicate.sql.core.lexer import Token, sqlite_tokens
from triplicate.sql.pg.ddl.defaults import MIDNIGHTS, STORED_UUID
from triplicate.sql.pg.ddl.parts import TextEdits, at, closing
from triplicate.sql.pg.translate.render_calls import RANDOM, UUID
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.datetimes import NOW, NOW_IN_CHECK

_NOW_WORDS = {
    types.TIMESTAMPTZ: "now()",
    types.TIMESTAMP: "localtimestamp",
    types.DATE: "current_date",
    types.TIME: "localtime",
}


def _words(tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(token.upper or token.text for token in tokens)


_EVERYWHERE = {
    STORED_UUID: "gen_random_uuid()",
    UUID: "gen_random_uuid()",
    RANDOM: "random()",
    **{NOW[oid]: word for oid, word in _NOW_WORDS.items()},
    **dict.fromkeys(MIDNIGHTS, "current_date"),
}
_FORMS = {_words(sqlite_tokens(form)): word for form, word in _EVERYWHERE.items()}
_IN_CHECK = {_words(sqlite_tokens(NOW_IN_CHECK[oid])): word for oid, word in _NOW_WORDS.items()}


def in_postgresql_words(sql: str) -> str:
    """A stored CREATE TABLE or CREATE INDEX, so that a database that reads it as PostgreSQL's stores the same.

    Others are not changed: views and triggers have a mark by which they are taken as they are.

    Raises:
        ArgumentError: it calls SQLite's random(), which is a whole number.
    """
    tokens = sqlite_tokens(sql)
    if not {"TABLE", "INDEX"} & set(_words(tokens[:3])):
        return sql
    edits, done, check_end = TextEdits(sql), 0, -1
    for index, token in enumerate(tokens):
        if index < done:
            continue
        if token.upper == "CHECK" and at(tokens, index + 1).text == "(":
            check_end = closing(tokens, index + 1)
        forms = _FORMS | _IN_CHECK if index < check_end else _FORMS
        found = next((form for form in forms if _words(tokens[index : index + len(form)]) == form), None)
        if found is not None:
            done = index + len(found)
            edits.replace_tokens(tokens[index:done], forms[found])
        elif token.upper == "RANDOM" and at(tokens, index + 1).text == "(":
            raise ArgumentError(
                f"{sql[:60]!r} … calls SQLite's random(), which PostgreSQL does not have: export the database as a SQLite file"
            )
        elif token.upper == "LIKE" and at(tokens, index - 1).text not in ("(", ","):
            edits.replace_tokens([token], "ILIKE")  # SQLite's LIKE ignores case.
        elif _words(tokens[index : index + 4]) == ("CAST", "(", "SIGN", "("):
            end = closing(tokens, index + 1)
            if _words(tokens[closing(tokens, index + 3) + 1 : end]) == ("AS", "REAL"):
                edits.remove(tokens[index : index + 2])
                edits.replace(tokens[end - 3].end, tokens[end].end, "")
        elif _words(tokens[index : index + 3]) == ("AS", "REAL", ")"):
            edits.replace_tokens([tokens[index + 1]], "double precision")  # SQLite's REAL has eight bytes.
    return edits.text()
