"""Queries of the corpus have the same answers in a view, in WITH, by a trigger, in a table that is made of them, and with parameters."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.differential import corpus
from tests.differential.comparison import Answer
from tests.differential.corpus import Statement
from tests.differential.runner import Tally
from tests.differential.servers import Database
from tests.differential.wrapped import compare_answers, wrapped_verdicts

EVERY = int(os.environ.get("WRAPPED_EVERY", "12"))
"""One scenario of this many is run; `make check-deep` sends all."""


def test_queries_get_the_same_answers_in_all_ways(databases: tuple[Database, Database], tally: Tally) -> None:
    scenarios = [scenario for path in corpus.files() for scenario in corpus.read_file(path)]
    verdicts = [verdict for scenario in scenarios[::EVERY] for verdict in wrapped_verdicts(scenario, databases)]
    counts = Counter(verdict.outcome for verdict in verdicts)
    tally.generated.update(counts)
    wrong = [str(verdict) for verdict in verdicts if verdict.outcome == "DIFFERENT"]
    assert not wrong, f"{len(wrong)} of {len(verdicts)} uses:\n" + "\n".join(wrong)
    assert counts["equal"] > 1500 // EVERY
    assert counts["refused"] < len(verdicts) // 20


@pytest.mark.parametrize(
    ("here", "outcome"),
    [
        (Answer("SELECT 1", ("a",), (1700,), (("2.5",),)), "equal"),
        (Answer("SELECT 1", ("a",), (1700,), (("2.51",),)), "DIFFERENT"),
        (Answer("SELECT 1", ("a",), (25,), (("2.50",),)), "DIFFERENT"),
        (Answer("SELECT 1", ("b",), (1700,), (("2.50",),)), "DIFFERENT"),
        (Answer("SELECT 1", ("a",), (1700,), ()), "DIFFERENT"),
        (Answer(sqlstate="0A000", message="not here"), "refused"),
        (Answer(sqlstate="42883", message="no such function"), "DIFFERENT"),
    ],
)
def test_an_answer_that_differs_is_seen(here: Answer, outcome: str) -> None:
    verdict = compare_answers(Statement("select 2.50 as a", "here"), "view", Answer("SELECT 1", ("a",), (1700,), (("2.50",),)), here)
    assert verdict is not None
    assert verdict.outcome == outcome
