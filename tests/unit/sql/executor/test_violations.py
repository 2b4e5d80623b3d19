"""A broken constraint is named as PostgreSQL names it, and not named where it is not certain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.property.rowlog_workload import Pair
from triplicate.errors import SqlError, Violation
from triplicate.sql.executor.statement_batches import AutocommitRequest
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.statement_failures import failure_of

SCHEMA = (
    """create table parent(id integer primary key, email text unique, n int check (n > 0), m int,
    constraint small check (n < 100), check (m > 5), check (m < n + 100), check (m<50))""",
    "create unique index lower_email on parent(lower(email))",
    'create table "odd.name"(id int not null primary key, "a.b" int not null, c int, unique("a.b", c))',
    "create table child(id integer primary key, p int not null references parent(id), a int, b int, constraint ab unique(a, b))",
    "create table two(x int references parent(id), y int references child(id))",
    "create table single(x int references parent(id))",
    "insert into single values (null)",
    "create table logged(x int check (x <> 13))",
    "create trigger log_it after insert on child begin insert into logged values (new.a); end",
    "insert into parent values (1, 'a', 1, null), (2, 'b', 1, null)",
    "insert into child values (1, 1, 1, 1)",
    'insert into "odd.name" values (1, 1, 1)',
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(Path(tmp_path_factory.mktemp("violations")))
    for sql in SCHEMA:
        assert failure(made, sql) is None
    yield made
    made.close()


def failure(pair: Pair, sql: str) -> SqlError | None:
    """The error of a statement, which is undone."""
    pending = pair.writer.run_batch([AutocommitRequest(pair.gate.examine(sql), ())])
    error = pending.answers[0].error
    if error is None:
        pair.send(pending)
    else:
        pair.writer.rollback()
    return error


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("insert into parent(id) values (1)", Violation("23505", "parent", ("id",), "parent_pkey")),
        ("insert into parent(email) values ('A')", Violation("23505", "parent", (), "lower_email")),
        ("insert into child(p, a, b) values (1, 1, 1)", Violation("23505", "child", ("a", "b"), "ab")),
        ("insert into child(p) values (null)", Violation("23502", "child", ("p",))),
        ("insert into parent(n) values (0)", Violation("23514", "parent", (), "parent_n_check")),
        ("insert into parent(n) values (100)", Violation("23514", "parent", (), "small")),
        ("insert into parent(m) values (5)", Violation("23514", "parent", (), "parent_m_check")),
        ("insert into parent(m, n) values (1000, 1)", Violation("23514", "parent", (), "parent_check")),
        ("insert into parent(m) values (70)", Violation("23514", "parent", (), "parent_m_check1")),
        ("insert into child(p, a) values (1, 13)", Violation("23514", "logged", (), "logged_x_check")),
        ("insert into child(p) values (7)", Violation("23503", "child", ("p",), "child_p_fkey", "parent")),
        ("update child set p = 7", None),
        ("update single set x = 7", Violation("23503", "single", ("x",), "single_x_fkey", "parent")),
        ("insert into two values (7, 1)", None),
        ("delete from child", Violation("23503", "child", (), "two_y_fkey", "two", is_referred=True)),
        ("delete from parent where id = 1", None),
        ('insert into "odd.name" values (2, 1, 1)', None),
    ],
)
def test_the_constraint_is_named(pair: Pair, sql: str, expected: Violation | None) -> None:
    if sql == "delete from child":
        assert failure(pair, "insert into two values (1, 1)") is None
    error = failure(pair, sql)
    assert error is not None
    assert error.violation == expected
    assert "constraint failed" in error.message, "the message stays SQLite's for those who use sqlite3"


@pytest.mark.parametrize(
    ("violation", "message", "detail", "fields"),
    [
        (
            Violation("23505", "t", ("a", "b"), "t_a_b_key"),
            'duplicate key value violates unique constraint "t_a_b_key"',
            "Key (a, b) already exists.",
            b"spublic\0tt\0nt_a_b_key\0",
        ),
        (Violation("23505", "t", (), "i"), 'duplicate key value violates unique constraint "i"', None, b"spublic\0tt\0ni\0"),
        (
            Violation("23502", "t", ("a",)),
            'null value in column "a" of relation "t" violates not-null constraint',
            None,
            b"spublic\0tt\0ca\0",
        ),
        (
            Violation("23514", "t", (), "t_a_check"),
            'new row for relation "t" violates check constraint "t_a_check"',
            None,
            b"spublic\0tt\0nt_a_check\0",
        ),
        (
            Violation("23503", "t", ("a",), "t_a_fkey", "o"),
            'insert or update on table "t" violates foreign key constraint "t_a_fkey"',
            'Key (a) is not present in table "o".',
            b"spublic\0tt\0nt_a_fkey\0",
        ),
        (
            Violation("23503", "o", (), "t_a_fkey", "t", is_referred=True),
            'update or delete on table "o" violates foreign key constraint "t_a_fkey" on table "t"',
            'Key is still referenced from table "t".',
            b"spublic\0tt\0nt_a_fkey\0",
        ),
    ],
)
def test_clients_of_postgresql_get_its_words_and_fields(violation: Violation, message: str, detail: str | None, fields: bytes) -> None:
    error = SqlError(violation.sqlstate, "X constraint failed: t.a")
    error.violation, error.context = violation, "COPY t, line 3"
    found = failure_of(error)
    assert (found.sqlstate, found.message, found.detail, found.context) == (violation.sqlstate, message, detail, "COPY t, line 3")
    assert fields in wire.error_response(found)


TRIGGERS = (
    "create table taken(n int)",
    "create table summed(x int)",
    'create trigger "sum it" after insert on taken begin insert into summed values (abs(new.n)); end',
    "create trigger plain after insert on taken begin insert into summed values (1); end",
    "create trigger sum_old after update on taken begin insert into summed select abs(new.n); end",
    "insert into taken values (1)",
)


def test_a_value_that_cannot_be_computed_names_the_triggers_that_compute(pair: Pair) -> None:
    for sql in TRIGGERS:
        assert failure(pair, sql) is None
    for sql, context in (
        ("insert into taken values (-9223372036854775808)", "The statement runs triggers: sum it"),
        ("update taken set n = -9223372036854775808", "The statement runs triggers: sum_old"),
        ("insert into summed values (abs(-9223372036854775808))", None),
    ):
        error = failure(pair, sql)
        assert error is not None
        assert (error.sqlstate, error.context) == ("22003", context)
