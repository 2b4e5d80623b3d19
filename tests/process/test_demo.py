"""A demonstration that is killed leaves nothing running, and the next one starts over and succeeds."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import psutil

from tests.process.running import command, environment, started, wait_until


def processes_of(folder: Path) -> list[int]:
    """Ids of all processes that name the folder on their command line."""
    alive = [process for process in psutil.process_iter(["cmdline", "status"]) if process.info["status"] != psutil.STATUS_ZOMBIE]
    return [process.pid for process in alive if any(str(folder) in word for word in process.info["cmdline"] or [])]


def test_a_killed_demonstration_leaves_nothing_and_the_next_one_succeeds(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with started("demo", "--dir", str(folder)) as demo:
        wait_until(lambda: len(processes_of(folder)) >= 5, 60.0, "the demonstration and its bookies run")
        demo.send_signal(signal.SIGKILL)
        demo.communicate()
        wait_until(lambda: processes_of(folder) == [], 10.0, "no process of the folder is left")
    answer = subprocess.run(
        command("demo", "--dir", str(folder)), env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["missing"] == 0
    assert all(summary["verified"].values())
    assert processes_of(folder) == []
