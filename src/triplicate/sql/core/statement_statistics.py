"""Counts and times of statements by their text, as this node has run them. Pure.

A text is shown without its constants, so that statements that differ in them count together, and that no value or password is in it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import islice

from triplicate.sql.core.lexer import Statement, next_sqlite_tokens
from triplicate.sql.core.statement_waits import StatementWaits

STATEMENTS_MAX = 5000
"""Limit on the texts that are counted. Beyond it those that have run least are forgotten."""
_FORGOTTEN = STATEMENTS_MAX // 20
SHOWN_TOKENS = 500
"""Tokens of the longest text that is shown whole."""
_CONSTANTS = ("string", "number")


@lru_cache(maxsize=2 * STATEMENTS_MAX)
def text_without_constants(statement: Statement) -> str:
    """The statement with a parameter in the place of each constant, and without comments."""
    tokens = statement.tokens[:SHOWN_TOKENS]
    numbers = [int(token.text[1:]) for token in tokens if token.kind == "parameter" and token.text[1:].isdigit()]
    number, parts, end = max(numbers, default=0), list[str](), 0
    for token in tokens:
        parts.append(" " if token.start > end and parts else "")
        if token.kind in _CONSTANTS:
            number += 1
            parts.append(f"${number}")
        else:
            parts.append(token.text)
        end = token.end
    return "".join(parts) + (" …" if len(statement.tokens) > SHOWN_TOKENS else "")


def sqlite_statement(sql: str) -> Statement:
    """A text in SQLite's dialect as far as it is shown. A text in double quotes counts as a name."""
    tokens = [token for token in islice(next_sqlite_tokens(sql), SHOWN_TOKENS + 1) if token.upper != ";"]
    return Statement(sql, tuple(tokens))


class StatementUse:
    """One text of one role."""

    __slots__ = (
        "calls",
        "errors",
        "is_counted",
        "log_wait_s",
        "longest_s",
        "read_wait_s",
        "role",
        "rows",
        "shortest_s",
        "text",
        "total_s",
        "writer_wait_s",
    )

    def __init__(self, role: str, text: str) -> None:
        self.role = role
        self.text = text
        self.calls = 0
        self.errors = 0
        self.rows = 0
        """Rows that were returned or changed."""
        self.total_s = 0.0
        self.shortest_s = 0.0
        self.longest_s = 0.0
        self.writer_wait_s = 0.0
        self.log_wait_s = 0.0
        self.read_wait_s = 0.0
        """The parts of the total that `StatementWaits` names."""
        self.is_counted = True
        """Whether the statistics still have it. They may have been reset, or have forgotten it."""

    def add(self, seconds: float, rows: int, calls: int) -> None:
        """Count calls that took some time together."""
        each = seconds if calls == 1 else seconds / calls
        if each < self.shortest_s or not self.calls:
            self.shortest_s = each
        if each > self.longest_s:
            self.longest_s = each
        self.calls += calls
        self.rows += rows
        self.total_s += seconds

    def add_waits(self, waits: StatementWaits) -> None:
        """Count the waits of a call, and clear them."""
        self.writer_wait_s += waits.writer_s
        self.log_wait_s += waits.log_s
        self.read_wait_s += waits.read_s
        waits.writer_s = waits.log_s = waits.read_s = 0.0


class StatementStatistics:
    """The statements of one copy of a database. For the event loop only."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str, str], StatementUse] = {}
        self.slow_s = 0.0
        """From this time on a statement is slow; 0 for none."""
        self.on_slow: Callable[[StatementUse, float, int], None] = lambda use, seconds, rows: None
        """Called with a slow statement, its time in seconds, and its rows."""

    def use(self, role: str, statement: Statement) -> StatementUse:
        """The entry of a statement of a role."""
        key = role, text_without_constants(statement)
        found = self._uses.get(key)
        if found is None:
            if len(self._uses) >= STATEMENTS_MAX:
                self._forget_some()
            found = self._uses[key] = StatementUse(*key)
        return found

    def count(self, use: StatementUse, seconds: float, rows: int, waits: StatementWaits, calls: int = 1, *, failed: bool = False) -> None:
        """Count an execution that has ended, with its waits, which are cleared.

        Args:
            seconds: of all its `calls` together. rows: returned or changed.
        """
        use.add(seconds, rows, calls)
        if waits.writer_s or waits.log_s or waits.read_s:
            use.add_waits(waits)
        if failed:
            use.errors += 1
        if self.slow_s and seconds >= self.slow_s:
            self.on_slow(use, seconds, rows)

    def _forget_some(self) -> None:
        for one in sorted(self._uses.values(), key=lambda use: use.calls)[:_FORGOTTEN]:
            one.is_counted = False
            del self._uses[one.role, one.text]

    def uses(self) -> list[StatementUse]:
        return list(self._uses.values())

    def reset(self) -> None:
        """Forget everything."""
        for one in self._uses.values():
            one.is_counted = False
        self._uses.clear()
