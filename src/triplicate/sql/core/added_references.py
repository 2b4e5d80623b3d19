"""ALTER TABLE … ADD FOREIGN KEY of a table that holds rows, as the log has it: the new text of the table follows from the statement. Pure.

SQLite has no such statement. A foreign key is a part of a table's text and of nothing else in the file.
"""

from __future__ import annotations

from typing import NamedTuple

from triplicate.sql.core.brackets import closing
from triplicate.sql.core.lexer import identifier, quote, sqlite_tokens


class AddedReference(NamedTuple):
    """A foreign key for an existing table."""

    table: str
    constraint: str
    """The constraint as CREATE TABLE has it, with its name if it has one."""

    @property
    def sql(self) -> str:
        """The statement in the log."""
        return f"ALTER TABLE {quote(self.table)} ADD {self.constraint}"


def added_reference(sql: str) -> AddedReference | None:
    """Parse ALTER TABLE … ADD [CONSTRAINT name] FOREIGN KEY; None for any other statement."""
    found = sqlite_tokens(sql)
    words = [token.upper if token.kind == "word" else "" for token in found[:8]]
    if words[:2] != ["ALTER", "TABLE"] or words[3:4] != ["ADD"]:
        return None
    at = 6 if words[4:5] == ["CONSTRAINT"] else 4
    if words[at : at + 2] != ["FOREIGN", "KEY"]:
        return None
    return AddedReference(identifier(found[2]), sql[found[4].start : found[-1].end])


def with_constraint(created: str, constraint: str) -> str:
    """A CREATE TABLE with one more constraint at its end."""
    tokens = sqlite_tokens(created)
    opening = next(index for index, token in enumerate(tokens) if token.text == "(")
    end = tokens[closing(tokens, opening)].start
    return f"{created[:end]}, {constraint}{created[end:]}"
