"""The progress of a decommission, as lines on standard error."""

from __future__ import annotations

import sys

import pytest

from triplicate.autorecovery import DecommissionPhase, Obstacle
from triplicate.cli.server_commands.bookie_decommission import ProgressLines


@pytest.mark.parametrize(("is_terminal", "expected"), [(False, 3), (True, 90)])
def test_a_decommission_that_waits_prints_a_line_a_minute_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool, expected: int
) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    lines = ProgressLines(now)
    lines.progress.enter(DecommissionPhase.READ_ONLY)
    lines.progress.enter(DecommissionPhase.MOVE)
    lines.progress.enter(DecommissionPhase.VERDICT)
    begun = capsys.readouterr().err.splitlines()
    assert [line.split(";")[0] for line in begun] == [
        "waits until the bookies are read-only",
        "moves ledgers",
        "compares lists of entries",
    ]
    for _ in range(180 * 2):
        now += 0.5
        lines.progress.enter(DecommissionPhase.MOVE)
        lines.progress.enter(DecommissionPhase.VERDICT)
        lines.progress.meet((Obstacle(7, "another worker repairs it", True),))
    said = capsys.readouterr().err.splitlines()
    assert len(said) == expected
    assert "blocked by ledger 7: another worker repairs it" in said[-1]
    lines.progress.enter(DecommissionPhase.REMOVE)
    assert capsys.readouterr().err.startswith("removes the cookies")
