"""The text of a primary key that a table got after its rows: a unique index whose text says so. Pure.

SQLite cannot add a primary key to a table. A unique index on columns that are NOT NULL accepts the same rows, and is built without copying
them. Only a comment between its name and ON distinguishes it from a user's unique index. SQLite stores the comment, keeps it when the table
or a column is renamed, and every copy and every dump has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from triplicate.sql.core.lexer import next_sqlite_tokens, quote

KEY_MARK = "/* primary key */"


def key_index(name: str, table: str, columns: Sequence[str]) -> str:
    """The statement that creates such an index."""
    return f"CREATE UNIQUE INDEX {quote(name)} {KEY_MARK} ON {quote(table)} ({', '.join(map(quote, columns))})"


def is_key_index(sql: str) -> bool:
    """Whether the stored text of an index has the mark. `storage.sqlite_schema.key_index_of` decides whether the index is the key."""
    tokens = list(islice(next_sqlite_tokens(sql), 5))
    if [token.upper for token in tokens[:3]] != ["CREATE", "UNIQUE", "INDEX"] or len(tokens) < 5 or tokens[4].upper != "ON":
        return False
    return sql[tokens[3].end : tokens[4].start].strip() == KEY_MARK
