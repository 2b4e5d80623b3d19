"""Expressions drawn at random get PostgreSQL's values and types, in both formats."""

from __future__ import annotations

import os
from collections.abc import Sequence
from decimal import Decimal

import pytest

from tests.differential.comparison import Answer, class_of, differences
from tests.differential.drawn import TABLE, statements
from tests.differential.runner import WAYS, Tally, run_statement
from tests.differential.servers import Database

FIRST = int(os.environ.get("DRAWN_FROM", "1"))
COUNT = int(os.environ.get("DRAWN", "500"))
"""Statements; `make check-deep` draws more."""
_CLOSE = Decimal("1e-14")
"""Digits beyond the precision of a float: docs/sql.md, `numeric-digits`."""


def is_known(postgresql: Answer, here: Answer, found: Sequence[str]) -> bool:
    """Whether the difference is a documented one: trailing zeros of a numeric, or its digits beyond the fifteenth.

    An error on both sides is alike, whichever part of the expression fails first.
    """
    if postgresql.sqlstate is not None and here.sqlstate is not None:
        return True
    if list(found) != ["rows"] or len(postgresql.rows) != 1 or len(here.rows) != 1 or len(postgresql.types) != 1:
        return False
    one, other = postgresql.rows[0][0], here.rows[0][0]
    if one is None or other is None or class_of(postgresql.types[0]) not in ("numeric", "float"):
        return False
    exact, close = Decimal(str(one)), Decimal(str(other))
    return abs(exact - close) <= abs(exact) * _CLOSE


def test_expressions_drawn_at_random_get_the_same_answers(databases: tuple[Database, Database], tally: Tally) -> None:
    wrong: list[str] = []
    for database in databases:
        database.clean()
    with databases[0].connect() as postgresql, databases[1].connect() as here:
        for text in TABLE:
            postgresql.execute(text.encode())
            here.execute(text.encode())
        for statement in statements(FIRST, COUNT):
            for way in WAYS:
                one, other = (run_statement(connection.pgconn, statement, way) for connection in (postgresql, here))
                found = differences(one, other, statement.text)
                if found and not is_known(one, other, found):
                    sent = ", ".join(f"{parameter.type} {parameter.value!r}" for parameter in statement.parameters)
                    wrong.append(f"{statement.place}: {statement.text} ({sent})\n  {way}: {found}\n    {one}\n    {other}")
                    break
            else:
                tally.generated["equal"] += 1
    assert not wrong, f"{len(wrong)} of {COUNT} statements:\n" + "\n".join(wrong)


def test_most_drawn_statements_are_answered(reference: Database) -> None:
    drawn = statements(1, 100)
    assert drawn == statements(1, 100)
    reference.clean()
    with reference.connect() as connection:
        for text in TABLE:
            connection.execute(text.encode())
        answered = [run_statement(connection.pgconn, statement, "text") for statement in drawn]
    # An error on both servers compares nothing.
    errors = [answer.message for answer in answered if answer.sqlstate is not None]
    assert len(errors) <= 5, errors


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("1.50", "1.5", True),
        ("0.33333333333333333333", "0.3333333333333333", True),
        ("0.3333333333", "0.3333333334", False),
        ("1", None, False),
        ("1", "2", False),
    ],
)
def test_only_trailing_zeros_and_digits_beyond_a_float_are_excused(one: str, other: str | None, expected: bool) -> None:
    answers = [Answer("SELECT 1", ("x",), (1700,), ((value,),)) for value in (one, other)]
    assert is_known(answers[0], answers[1], ["rows"]) is expected
    assert not is_known(answers[0], Answer(sqlstate="22003"), ["error"])
