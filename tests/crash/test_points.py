"""Crash points, short form: some of every kind, at about every second operation of a workload. `make crash-test` tries more."""

from __future__ import annotations

import pytest

from tests.crash.points import Effort, try_points
from tests.examples import stride


@pytest.mark.parametrize(("directories", "seed"), [(1, 1), (2, 2)])
def test_acknowledged_entries_survive_a_crash_at_any_point(directories: int, seed: int) -> None:
    counts = try_points(directories, seed, Effort(orders=3, tears=3, step=stride(6), first=seed, again=24))
    assert not counts.losses, "\n".join(counts.shown)
    for kind in ("kills", "power cuts that lose all", "orders of unsynced writes", "torn writes", "second crashes", "lost indexes"):
        assert counts.tried[kind] > 10, (kind, counts.tried)


def test_a_few_crash_points_lose_nothing() -> None:
    counts = try_points(1, 1, Effort(orders=1, tears=0, step=14, first=5, deep=64, rebuild=8, again=512))
    assert not counts.losses, "\n".join(counts.shown)
    for kind, least in (("kills", 40), ("power cuts that lose all", 25), ("orders of unsynced writes", 8), ("lost indexes", 30)):
        assert counts.tried[kind] >= least, (kind, counts.tried)
