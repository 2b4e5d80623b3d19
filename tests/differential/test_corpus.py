"""Every statement of the corpus gets PostgreSQL's answer or is marked as different; marks and documentation agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential import corpus
from tests.differential.documentation import PAGE, read_ids
from tests.differential.runner import Tally, compare_scenario
from tests.differential.servers import Database

IDS = read_ids(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", corpus.files(), ids=lambda path: path.stem)
def test_every_answer_is_postgresqls_or_marked(path: Path, databases: tuple[Database, Database], tally: Tally) -> None:
    verdicts = [verdict for scenario in corpus.read_file(path) for verdict in compare_scenario(scenario, databases, IDS)]
    tally.verdicts.extend(verdicts)
    wrong = [str(verdict) for verdict in verdicts if verdict.outcome == "DIFFERENT"]
    assert not wrong, f"{len(wrong)} of {len(verdicts)} statements of {path.name}:\n" + "\n".join(wrong)


def test_every_row_of_the_documentation_is_used_and_every_mark_has_its_row() -> None:
    statements = [statement for path in corpus.files() for scenario in corpus.read_file(path) for statement in scenario.statements]
    used = {one.detail for one in statements if one.mark == "documented"}
    assert sorted(set(IDS)) == sorted(IDS), "an id stands twice"
    assert used - set(IDS) == set(), "no row in docs/sql.md"
    assert set(IDS) - used == set(), "no statement of the corpus shows these"


def test_the_corpus_is_no_smaller_than_it_was() -> None:
    counts = [len(scenario.statements) for path in corpus.files() for scenario in corpus.read_file(path)]
    assert sum(counts) >= 1500
