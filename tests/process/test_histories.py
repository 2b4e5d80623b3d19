"""Clients of real processes while leaders are killed, terminated, stopped and cut off: histories are correct, and leaders are replaced."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.histories.cluster import LocalCluster
from benchmarks.histories.nemesis import KILL, TERMINATE, Fault
from benchmarks.histories.outcome import Outcome
from benchmarks.histories.run import RESP, STORE, play
from benchmarks.histories.stages import Kind
from benchmarks.ledger.processes import BUILD, ROOT

STOPPED_S = 8.0
"""Shorter than a metadata session: only its silence shows that the leader hangs."""
RUN_LIMIT_S = 300.0
PAUSE_S = 0.05
"""Of each client. Without pauses they use both processors for as long as the faults last."""


def test_histories_with_killed_terminated_and_stopped_leaders_are_correct(tmp_path: Path) -> None:
    faults = [
        Fault("leader killed, a bookie stopped", KILL, STOPPED_S / 2),
        Fault("leader terminated", TERMINATE),
        Fault("leader stopped", STOPPED_S),
    ]
    with LocalCluster(tmp_path / "c", environment=RESP) as cluster:
        outcome = play(cluster, faults, operations=500, rounds=1, clients=6, store_clients=3, pause_s=PAUSE_S)
    assert_sound(outcome)
    assert outcome.report.operations > 100
    assert outcome.report.transfers > 20
    assert outcome.report.statements > 20
    assert outcome.store_report.operations > 100
    for history in outcome.levels.values():
        assert {"session", "bounded", "any"} <= set(history.reads)
    killed, terminated, stopped = outcome.injected
    assert terminated.target == STORE, "the leaders of database and store are hit in turn"
    assert killed.leader != killed.successor
    assert terminated.leader != terminated.successor
    assert stopped.leader != stopped.successor, f"nobody took over from a leader that hung for {STOPPED_S} s; the gap was {stopped.gap_s} s"
    assert stopped.gap_s < STOPPED_S


def assert_sound(outcome: Outcome) -> None:
    for report in (outcome.report, outcome.store_report):
        assert report.violations == report.undecided == []
    assert outcome.strange == []


@pytest.mark.deep
def test_histories_with_leaders_that_are_cut_off_are_correct() -> None:
    command = [sys.executable, "-m", "benchmarks.histories.run", "--clusters", "machines", "--rounds", "1", "--operations", "200"]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False)
    if "no machine is cut off" in done.stdout:
        pytest.skip("network namespaces cannot be made here")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((BUILD / "histories.json").read_text())["clusters"]["machines"]
    assert found["violations"] == found["undecided"] == []
    answered = {fault: {one["kind"]: one["answered"] for one in found["verdicts"] if one["fault"] == fault} for fault in faults_of(found)}
    assert len(answered) == 3
    assert all(count[Kind.STATEMENTS] > 20 and count[Kind.KEY_VALUE] > 20 for count in answered.values())
    assert all(gap["gap_s"] < STOPPED_S for gap in found["gaps"]), "clients find the successor while the machine is cut off"


def faults_of(found: dict[str, list[dict[str, str]]]) -> list[str]:
    return [gap["fault"] for gap in found["gaps"]]
