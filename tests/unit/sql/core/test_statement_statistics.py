"""Statistics of statements: their texts without constants, and the limit on what is kept."""

from __future__ import annotations

import pytest

from triplicate.sql.core import statement_statistics
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.core.statement_statistics import StatementStatistics, StatementUse, text_without_constants


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT a, 'x''y' FROM \"T\"  WHERE b=1.5 AND c = $2", 'SELECT a, $3 FROM "T" WHERE b=$4 AND c = $2'),
        ("SELECT 1 -- secret\n/* secret */ + 2", "SELECT $1 + $2"),
        ("CREATE ROLE r LOGIN PASSWORD 'secret'", "CREATE ROLE r LOGIN PASSWORD $1"),
        ("ALTER ROLE r PASSWORD $tag$secret$tag$", "ALTER ROLE r PASSWORD $1"),
        ("ALTER ROLE r PASSWORD E'sec\\'ret'", "ALTER ROLE r PASSWORD $1"),
        ("INSERT INTO t VALUES (1, X'00', 'a'\n'b')", "INSERT INTO t VALUES ($1, $2, $3)"),
    ],
)
def test_a_text_is_shown_without_constants_and_comments(sql: str, text: str) -> None:
    assert text_without_constants(statement_of(sql)) == text


def test_a_long_text_is_cut() -> None:
    text = text_without_constants(statement_of("SELECT " + ", ".join(["1"] * 1000)))
    assert text.endswith(" …")
    assert len(text) < 3000


def test_calls_are_added_up_by_role_and_text() -> None:
    statistics = StatementStatistics()
    for role, sql, seconds in (("a", "SELECT 1", 0.5), ("a", "SELECT 2", 0.25), ("b", "SELECT 3", 1.0)):
        statistics.use(role, statement_of(sql)).add(seconds, 3, 1)
    one, other = statistics.uses()
    assert (one.role, one.calls, one.rows, one.total_s, one.shortest_s, one.longest_s) == ("a", 2, 6, 0.75, 0.25, 0.5)
    assert (other.role, other.calls) == ("b", 1)
    statistics.reset()
    assert statistics.uses() == []
    assert not one.is_counted


def test_the_statements_that_have_run_least_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_statistics, "STATEMENTS_MAX", 10)
    monkeypatch.setattr(statement_statistics, "_FORGOTTEN", 2)
    statistics = StatementStatistics()
    uses: list[StatementUse] = []
    for number in range(11):
        use = statistics.use("r", statement_of(f"SELECT a{number}"))
        use.add(0.1, 0, 11 - number)
        uses.append(use)
    assert [use.is_counted for use in uses] == [True] * 8 + [False] * 2 + [True]
    assert len(statistics.uses()) == 9
