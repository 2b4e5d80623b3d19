"""A session leaves nothing outside its run folder."""

from __future__ import annotations

from pathlib import Path

from tests.spark.conftest import Bench, litter


def test_a_job_leaves_nothing_outside_the_run_folder(bench: Bench, place: Path, litter_before: set[Path]) -> None:
    log = bench.new_log()
    bench.write(log, range(10))
    assert bench.values(log) == list(range(10))
    assert litter() <= litter_before
    assert any((place / "spark" / "local").iterdir())
