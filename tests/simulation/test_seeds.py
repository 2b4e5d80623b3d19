"""Fifty seeds of the standard scenario: bookies and the writer crash, another client recovers, and the four promises hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from triplicate.sim import CHECKERS, Result, Summary, run_seed

SEEDS = range(1, 51)

_played = Summary()


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    yield
    _played.results.clear()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_promises_hold_in_every_seed(seed: int) -> None:
    result: Result = run_seed(seed)
    assert result.ok, str(result)
    result.facts = []
    _played.results.append(result)


def test_the_seeds_together_meet_every_fault_and_give_every_checker_something_to_decide() -> None:
    if len(_played.results) != len(SEEDS):
        pytest.skip("judges the fifty seeds together; run the whole file")
    totals = _played.totals()
    struck = (
        "writer_crash",
        "power_loss",
        "bookie_crash",
        "bookie_crash_at_any",
        "bookie_crash_at_sync",
        "link_block",
        "link_slow",
        "link_reset",
    )
    for name in ("acknowledged", "tailed", "read", "ended", "copy", "ensemble_changes", "metadata_connections_lost", "lost_bytes", *struck):
        assert totals.get(name, 0) > 0, f"no seed has any {name}: {totals}"
    assert totals["acknowledged"] > 50 * len(SEEDS)
    decided = _played.decided()
    assert set(decided) == set(CHECKERS)
    assert all(decided.values()), decided
