"""A killed demonstration leaves no process behind. `make demo-kill-test` kills it later, and starts it again."""

from __future__ import annotations

from pathlib import Path

from tests.process.demonstration import demonstration, kill_and_wait
from tests.waiting import wait_until


def test_a_demonstration_killed_during_a_spark_job_leaves_no_process(tmp_path: Path) -> None:
    with demonstration(tmp_path / "demo") as running:
        wait_until(lambda: running.has_worker() or running.process.poll() is not None, 120.0, "Spark's workers ingest the flights")
        assert running.process.poll() is None, running.said()
        lines = "\n".join(running.commands())
        for part in ("triplicate.cli.main bookie", "triplicate.cli.main node", "java", "pyspark.daemon"):
            assert part in lines
        kill_and_wait(running)
