"""``SELECT triplicate_statements_reset()``, which PostgreSQL's extension calls ``pg_stat_statements_reset()``. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.sql.core.lexer import Statement

_NAMES = ("TRIPLICATE_STATEMENTS_RESET", "PG_STAT_STATEMENTS_RESET")


@dataclass(frozen=True, slots=True)
class ResetStatistics:
    """The call, with the name of its column."""

    column: str
    parameters: int = 0


def statistics_reset(statement: Statement) -> ResetStatistics | None:
    """The call, if the statement is a SELECT of nothing else."""
    words = [token.upper for token in statement.tokens]
    if len(words) != 4 or words[0] != "SELECT" or words[1] not in _NAMES or words[2:] != ["(", ")"]:
        return None
    return ResetStatistics(words[1].lower())
