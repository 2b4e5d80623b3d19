"""Clients of real processes while leaders are killed, terminated and stopped: their history is correct, and a hung leader is replaced."""

from __future__ import annotations

from pathlib import Path

from benchmarks.histories.cluster import LocalCluster
from benchmarks.histories.nemesis import KILL, TERMINATE, Fault
from benchmarks.histories.run import play

STOPPED_S = 8.0
"""Shorter than a metadata session: only its silence shows that the leader hangs."""


def test_histories_with_killed_terminated_and_stopped_leaders_are_correct(tmp_path: Path) -> None:
    faults = [
        Fault("leader killed, a bookie stopped", KILL, STOPPED_S / 2),
        Fault("leader terminated", TERMINATE, 0.0),
        Fault("leader stopped", STOPPED_S, 0.0),
    ]
    with LocalCluster(tmp_path / "c") as cluster:
        outcome = play(cluster, faults, operations=500, rounds=1, clients=6)
    assert outcome.report.violations == outcome.report.undecided == outcome.strange == []
    assert outcome.report.operations > 100
    assert outcome.report.transfers > 20
    assert outcome.report.statements > 20
    assert {"session", "bounded", "any"} <= set(outcome.levels.reads)
    killed, terminated, stopped = outcome.injected
    assert killed.leader != killed.successor
    assert terminated.leader != terminated.successor
    assert stopped.leader != stopped.successor, f"nobody took over from a leader that hung for {STOPPED_S} s; the gap was {stopped.gap_s} s"
    assert stopped.gap_s < STOPPED_S
