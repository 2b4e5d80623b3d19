"""Queries drawn at random get PostgreSQL's answers, in every way in which a query is sent."""

from __future__ import annotations

import pytest

from tests.differential.corpus import Statement
from tests.differential.generated import TABLE, queries
from tests.differential.runner import WAYS, Pair, Tally, judge, run_statement
from tests.differential.servers import Database

SEEDS = tuple(range(1, 9))
QUERIES = 60
"""For each seed."""


@pytest.mark.parametrize("seed", SEEDS)
def test_queries_drawn_at_random_get_the_same_answers(seed: int, databases: tuple[Database, Database], tally: Tally) -> None:
    statements = [Statement(text, f"seed {seed}, query {number}") for number, text in enumerate(queries(seed, QUERIES), start=1)]
    pairs: list[list[Pair]] = [[] for _ in statements]
    for database in databases:
        database.clean()
    with databases[0].connect() as postgresql, databases[1].connect() as here:
        for text in TABLE:
            postgresql.execute(text.encode())
            here.execute(text.encode())
        for way in WAYS:
            for found, statement in zip(pairs, statements, strict=True):
                found.append(Pair(way, run_statement(postgresql.pgconn, statement, way), run_statement(here.pgconn, statement, way)))
    verdicts = [judge(statement, found, ()) for statement, found in zip(statements, pairs, strict=True)]
    tally.generated.update(verdict.outcome for verdict in verdicts)
    wrong = [str(verdict) for verdict in verdicts if verdict.outcome == "DIFFERENT"]
    assert not wrong, f"{len(wrong)} of {len(verdicts)} queries:\n" + "\n".join(wrong)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_draws_the_same_queries_and_most_of_them_are_answered(seed: int, reference: Database) -> None:
    drawn = queries(seed, QUERIES)
    assert drawn == queries(seed, QUERIES)
    reference.clean()
    with reference.connect() as connection:
        for text in TABLE:
            connection.execute(text.encode())
        answered = [run_statement(connection.pgconn, Statement(text, "drawn"), "text") for text in drawn]
    # An answer that is an error on both servers compares nothing but its SQLSTATE.
    errors = [answer for answer in answered if answer.sqlstate is not None]
    assert len(errors) <= QUERIES // 20, [answer.message for answer in errors]
