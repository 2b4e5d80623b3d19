"""Classification of statements of the session and of transactions."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.protocol.commands import (
    ClientCommand,
    Deallocate,
    Discard,
    EngineStatement,
    NoOperation,
    SetAccess,
    SetConstraints,
    SetParameter,
    classify,
)


@pytest.mark.parametrize(
    ("sql", "command"),
    [
        ("begin", EngineStatement(statement_of("BEGIN"))),
        ("begin immediate transaction", EngineStatement(statement_of("BEGIN IMMEDIATE"))),
        ("start transaction isolation level read committed, read only deferrable", EngineStatement(statement_of("BEGIN"), read_only=True)),
        ("commit work", EngineStatement(statement_of("COMMIT"))),
        ("end and no chain", EngineStatement(statement_of("COMMIT"))),
        ("abort transaction", EngineStatement(statement_of("ROLLBACK"))),
        ('rollback work to savepoint "A b"', EngineStatement(statement_of('ROLLBACK TO "A b"'))),
        ("rollback to savepoint", EngineStatement(statement_of("ROLLBACK TO savepoint"))),
        ("set transaction read only, not deferrable", SetAccess(True, for_session=False)),
        ("set session characteristics as transaction read write", SetAccess(False, for_session=True)),
        ("discard all", Discard()),
        ("set constraints all deferred", SetConstraints(immediate=False)),
        ('set constraints a, "B c" immediate', SetConstraints(immediate=True)),
        ("discard plans", NoOperation("DISCARD PLANS")),
        ("discard temporary", NoOperation("DISCARD TEMP")),
        ("deallocate prepare s", Deallocate("s")),
        ("deallocate prepare all", Deallocate(None)),
        ("close all", NoOperation("CLOSE CURSOR ALL")),
        ("set my.x = E'a\\nb'", SetParameter("my.x", "a\nb")),
        ("set time zone interval '+00:00' hour to minute", SetParameter("TimeZone", "+00:00")),
        ("set my.x = $$it's$$", SetParameter("my.x", "it's")),
        ("set search_path = 'public', \"$user\"", SetParameter("search_path", 'public, "$user"')),
    ],
)
def test_what_a_statement_is(sql: str, command: ClientCommand) -> None:
    assert classify(statement_of(sql)) == command


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("begin nope", "42601"),
        ("begin isolation level nope", "42601"),
        ("begin read only,", "42601"),
        ("start", "42601"),
        ("start immediate", "42601"),
        ("commit nope", "42601"),
        ("commit prepared 'x'", "0A000"),
        ("commit and chain", "0A000"),
        ("rollback to a b", "42601"),
        ("set transaction nope", "42601"),
        ("set constraints all", "42601"),
        ("discard", "42601"),
        ("discard nope", "42601"),
        ("deallocate", "42601"),
        ("close", "42601"),
        ("close c", "34000"),
    ],
)
def test_a_malformed_statement_is_refused(sql: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as refused:
        classify(statement_of(sql))
    assert refused.value.sqlstate == sqlstate


def test_vacuum_is_the_analyze_in_it() -> None:
    assert classify(statement_of("vacuum analyze t")) == EngineStatement(statement_of('ANALYZE "t"'))
    assert classify(statement_of("vacuum full t")) == NoOperation("VACUUM")
    assert classify(statement_of("vacuum into 'copy'")) == EngineStatement(statement_of("vacuum into 'copy'"))
