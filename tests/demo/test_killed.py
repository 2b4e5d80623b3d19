"""A demonstration that is killed during the load leaves nothing, and the next one in its folder succeeds. Takes some four minutes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.process.demonstration import demonstration, kill_and_wait, processes_of
from tests.process.running import command, environment
from tests.waiting import wait_until

LOAD_S = 240.0
WHOLE_S = 600.0


@pytest.mark.slow
def test_a_demonstration_killed_during_the_load_leaves_nothing_and_the_next_succeeds(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with demonstration(folder) as running:
        acknowledged = folder / "acknowledged.jsonl"

        def loads() -> bool:
            running.note()
            return running.process.poll() is not None or (acknowledged.exists() and len(acknowledged.read_text().splitlines()) >= 2)

        wait_until(loads, LOAD_S, "two batches are loaded")
        assert running.process.poll() is None, running.said()
        kill_and_wait(running)
    again = subprocess.run(
        command("demo", "--dir", str(folder)), env=environment(), capture_output=True, text=True, timeout=WHOLE_S, check=False
    )
    assert again.returncode == 0, again.stdout + again.stderr
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["missing"] == 0
    assert summary["verified"]
    assert all(summary["verified"].values())
    assert (folder / "flights.png").stat().st_size > 10_000
    assert processes_of(folder) == []
