"""The steps of a take-over, as the traces of the remaining nodes show them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.machines.timelines import TimeLine, Traces, steps_of

FAULT_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()


def line(after_s: float, text: str) -> str:
    stamp = datetime.fromtimestamp(FAULT_AT + after_s, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return f"{stamp}Z INFO triplicate: {text}"


LINES = [
    line(-2.0, "replica.role log=a role=leader position=1"),
    line(0.5, "client.ledger_created ledger=5"),
    line(0.9, "replica.peer_silent address=b:1 seconds=1.0"),
    line(1.4, "metadata.connection state=suspended servers=x"),
    line(1.7, "metadata.connection state=connected servers=x"),
    line(1.9, "metadata.connection state=connected servers=x"),
    line(2.1, "replica.leader_gone path=/a node=b"),
    line(2.2, "replica.role log=a role=candidate position=1"),
    line(2.3, "client.ledger_created ledger=6"),
    line(2.3, "metadata.connection state=connected servers=x"),
    "Traceback (most recent call last):",
    line(2.4, "log.taken_over log=a epoch=2"),
    line(2.9, "replica.role log=a role=leader position=1"),
    line(9.0, "client.ledger_recovered ledger=7"),
]


def test_each_step_is_found_once_and_in_order() -> None:
    steps = steps_of(LINES, FAULT_AT, FAULT_AT + 3.0)
    assert {name: pytest.approx(at_s, abs=0.002) for name, at_s in steps.items()} == {
        "suspected": 0.9,
        "metadata lost": 1.4,
        "metadata back": 1.9,
        "deposed": 2.1,
        "elected": 2.2,
        "ledger made": 2.3,
        "taken over": 2.4,
        "leads": 2.9,
    }
    assert list(steps.values()) == sorted(steps.values())


def test_a_connection_that_was_not_lost_is_not_back() -> None:
    assert "metadata back" not in steps_of([LINES[4], LINES[6]], FAULT_AT, FAULT_AT + 3.0)


def test_only_what_is_written_after_the_fault_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "first.log", tmp_path / "second.log"
    first.write_text(LINES[0] + "\n")
    second.write_text("")
    traces = Traces([first, second])
    first.write_text(LINES[0] + "\n" + LINES[3] + "\n")
    second.write_text(LINES[2] + "\n")
    assert traces.lines() == [LINES[2], LINES[3]]


def test_a_time_line_names_the_fault_and_the_steps() -> None:
    found = TimeLine("stop", with_metadata_leader=True, gap_s=2.96, steps={"suspected": 0.9, "leads": 2.9})
    assert str(found) == "stop with ZooKeeper's leader: 2.96 s (suspected 0.90, leads 2.90)"
