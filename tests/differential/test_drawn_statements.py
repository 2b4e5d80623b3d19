"""Whole statements drawn at random get PostgreSQL's answers, and leave the same rows."""

from __future__ import annotations

import os

import pytest

from tests.differential.comparison import Answer
from tests.differential.corpus import Statement
from tests.differential.drawn_statements import ROWS, TABLES, statements
from tests.differential.runner import Pair, Tally, judge, run_statement
from tests.differential.servers import Database

SEEDS = tuple(range(1, 1 + int(os.environ.get("TRIPLICATE_STATEMENT_SEEDS", "4"))))
STATEMENTS = 40
"""Queries for each seed; there is a change for each four."""


@pytest.mark.parametrize("seed", SEEDS)
def test_statements_drawn_at_random_get_the_same_answers(seed: int, databases: tuple[Database, Database], tally: Tally) -> None:
    drawn = [Statement(text, f"seed {seed}, statement {number}") for number, text in enumerate(statements(seed, STATEMENTS), start=1)]
    verdicts = []
    for database in databases:
        database.clean()
    with databases[0].connect() as postgresql, databases[1].connect() as here:
        for text in (*TABLES, *ROWS):
            postgresql.execute(text.encode())
            here.execute(text.encode())
        for number, statement in enumerate(drawn):
            # Each way in turn: a change is sent once.
            way = ("text", "binary")[number % 2]
            verdicts.append(
                judge(
                    statement,
                    [Pair(way, run_statement(postgresql.pgconn, statement, way), run_statement(here.pgconn, statement, way))],
                    (),
                )
            )
    tally.generated.update(verdict.outcome for verdict in verdicts)
    wrong = [str(verdict) for verdict in verdicts if verdict.outcome == "DIFFERENT"]
    assert not wrong, f"{len(wrong)} of {len(verdicts)} statements:\n" + "\n".join(wrong)


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_seed_draws_the_same_statements_and_most_of_them_are_answered(seed: int, reference: Database) -> None:
    drawn = statements(seed, STATEMENTS)
    assert drawn == statements(seed, STATEMENTS)
    reference.clean()
    answers: list[Answer] = []
    with reference.connect() as connection:
        for text in (*TABLES, *ROWS):
            connection.execute(text.encode())
        answers = [run_statement(connection.pgconn, Statement(text, "drawn"), "text") for text in drawn]
    errors = [answer.message for answer in answers if answer.sqlstate is not None]
    assert len(errors) <= len(drawn) // 5, errors
