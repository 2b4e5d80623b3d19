"""``last_insert_rowid()``, ``changes()`` and ``total_changes()`` of one session. Pure.

All sessions share the connection of the writer, and those for reads, so SQLite's own answers are of another session's statements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Prepared, StatementKind
from triplicate.sql.core.lexer import identifier, sqlite_tokens

COUNTERS = frozenset(("last_insert_rowid", "changes", "total_changes"))
_CALL = re.compile(r"\b(?:last_insert_rowid|(?:total_)?changes)\b", re.IGNORECASE)


def may_count(sql: str) -> bool:
    """Whether a statement that was not examined may call one of the functions."""
    return _CALL.search(sql) is not None


@dataclass(slots=True)
class SessionCounters:
    """The values after the session's last change."""

    last_row_id: int = 0
    changes: int = 0
    total_changes: int = 0

    def changed(self, prepared: Prepared, rows: int, last_row_id: int) -> int:
        """A statement has succeeded, and inserted this rowid last, or 0 for none. Returns the session's last rowid."""
        if prepared.kind is StatementKind.WRITE:
            self.last_row_id = last_row_id or self.last_row_id
            self.changes = rows
            self.total_changes += rows
        return self.last_row_id

    def bound(self, prepared: Prepared) -> Prepared:
        """The statement with this session's values in the place of the calls.

        An INSERT computes ``last_insert_rowid()`` itself, from the session's value on, since it changes with each of its rows.

        Raises:
            SqlError: 0A000, the call is not in the statement itself, but in a view, or the statement is a definition.
        """
        if not prepared.counts:
            return prepared
        values = {"last_insert_rowid": self.last_row_id, "changes": self.changes, "total_changes": self.total_changes}
        is_insert = prepared.kind is StatementKind.WRITE and prepared.tag in ("INSERT", "REPLACE")
        sql, tokens, at, found = prepared.sql, sqlite_tokens(prepared.sql), 0, 0
        pieces: list[str] = []
        for index, token in enumerate(tokens):
            name = identifier(token).lower() if token.kind in ("word", "quoted") else ""
            rest = [one.text for one in tokens[index + 1 : index + 4]]
            size = 2 if rest[:2] == ["(", ")"] else 3 if rest == ["(", "*", ")"] else 0
            if name not in values or not size:
                continue
            found += 1
            if not (is_insert and name == "last_insert_rowid"):
                # The sum is no constant to SQLite's ORDER BY, and has no type of its own, as the call.
                pieces += [sql[at : token.start], f"(0+{values[name]})"]
                at = tokens[index + size].end
        if prepared.kind is StatementKind.SCHEMA or not found:
            raise SqlError(
                "0A000",
                "last_insert_rowid(), changes() and total_changes() are not available in views and definitions",
                hint="Call them in a statement of the session whose changes they count.",
            )
        return replace(prepared, sql="".join(pieces) + sql[at:], last_row_id=self.last_row_id)
