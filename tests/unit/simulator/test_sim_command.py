"""`triplicate sim`: bad input gets one line and code 2, ranges give totals, a failing plan is replayed and made small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.unit.simulator.tiny import TinyPlay, tiny_plan
from triplicate_simulator import WORKLOADS, Mutant, MutantResult, Plan, ShrunkPlan, Summary, Verdict, plan_of
from triplicate_simulator import Result as Outcome
from triplicate_simulator.runner.shrink import ViolationKind
from triplicate_simulator.sim_command import check_writable, keep_plan, show_totals, sim


def call(*arguments: str) -> Result:
    return CliRunner().invoke(sim, list(arguments), standalone_mode=False)


def refused(*arguments: str) -> str:
    """The last line of what a refused command says."""
    answer = CliRunner().invoke(sim, list(arguments))
    assert answer.exit_code == 2, answer.output
    return answer.output.strip().splitlines()[-1]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKLOADS, "tiny", TinyPlay)


@pytest.mark.parametrize(
    ("seeds", "why"),
    [
        ("5..3", "runs backwards"),
        ("a..b", "no range of seeds"),
        ("-1..3", "no range of seeds"),
        ("1..99999999999", "more than"),
        ("", "no range"),
    ],
)
def test_a_range_that_is_none_is_refused(seeds: str, why: str) -> None:
    assert why in refused("run", f"--seeds={seeds}")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("run", "--seeds", "1", "--play", "chess"), "chess"),
        (("run", "--seeds", "1", "--jobs", "0"), "0"),
        (("run",), "--seeds"),
        (("replay", "x"), "x"),
        (("replay", "1", "--plan", "/nonexistent"), "/nonexistent"),
        (("replay", "1", "--mutant", "nonsense"), "nonsense"),
        (("shrink", "1", "--runs", "0"), "0"),
        (("mutants", "nonsense"), "nonsense"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments: tuple[str, ...], why: str) -> None:
    assert why in refused(*arguments)


@pytest.mark.parametrize("text", ["", "{}", "[1]", "hello", '{"v": 1, "play": "ledgers"}', '{"v": 1, "play": []}', "\x00"])
@pytest.mark.parametrize("command", ["replay", "shrink"])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, command: str, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    assert "no plan" in refused(command, "1", "--plan", str(path))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"v": 2}, "the plan is of version 2, and this program reads version 1 only"),
        ({"duration_s": float("nan")}, "duration_s is nan"),
        ({"duration_s": -5}, "duration_s is -5"),
        ({"duration_s": 1e9}, "duration_s is 1000000000.0"),
        ({"sync_high_s": "x"}, "sync_high_s is 'x'"),
        ({"faults": [{"kind": "flood", "at_s": 1.0}]}, "there is no fault 'flood'"),
        ({"faults": [{"kind": "crash", "at_s": "x", "target": "bookie-1"}]}, "at_s of fault 1 is 'x'"),
        ({"faults": [{"kind": "crash", "at_s": 1, "target": 1}]}, "target and other of fault 1"),
        ({"faults": [{"kind": "crash", "at_s": 1, "options": {"after": []}}]}, "options of fault 1"),
        ({"load": {"entries": "x"}}, "entries of the load is 'x'"),
        ({"load": {"long_poll": 1}}, "long_poll of the load is 1"),
        ({"load": {"entries": True}}, "entries of the load is True"),
        ({"load": {"digest": "MD5"}}, "cannot begin with this load: KeyError('MD5')"),
        ({"load": 5}, "no plan"),
    ],
)
def test_a_plan_that_cannot_be_played_is_refused_by_name(tmp_path: Path, changed: dict[str, object], why: str) -> None:
    """Some of these ended in a traceback, or never."""
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**json.loads(plan_of(1).to_json()), **changed}))
    assert why in refused("replay", "1", "--plan", str(path))


def test_a_play_that_contradicts_the_plan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(plan_of(1).to_json())
    assert "is a plan of ledgers" in refused("shrink", "1", "--plan", str(path), "--play", "logs")


@pytest.mark.usefixtures("tiny")
def test_a_node_that_was_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(tiny_plan(entries=3, duration_s=2.0).to_json())
    assert "there is no node 'nobody'" in refused("replay", "1", "--plan", str(path), "--node", "nobody")


@pytest.mark.parametrize("name", ["nowhere/plan.json", "."])
def test_a_plan_that_cannot_be_kept_is_refused_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It was tried in the end, when minutes of work were lost by it."""
    monkeypatch.setattr("triplicate_simulator.sim_command.shrink", lambda *_, **__: pytest.fail("it was played"))
    path = tmp_path / name
    assert str(path) in refused("shrink", "1", "--out", str(path))


def test_the_try_whether_a_plan_can_be_kept_leaves_nothing_behind(tmp_path: Path) -> None:
    new, old = tmp_path / "new.json", tmp_path / "old.json"
    old.write_text("as it was")
    check_writable(new)
    check_writable(old)
    assert not new.exists()
    assert old.read_text() == "as it was"


def test_a_plan_that_could_not_be_kept_after_all_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory"):
        keep_plan(tmp_path, tiny_plan())
    assert '"play": "tiny"' in capsys.readouterr().out


def test_without_a_checkout_mutants_say_so_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("triplicate_simulator.runner.mutants.FOLDER", tmp_path / "nowhere")
    assert "part of a checkout" in refused("mutants")


def test_a_mutant_that_no_longer_fits_is_distinguished_from_a_survivor(monkeypatch: pytest.MonkeyPatch) -> None:
    lost, moved = (
        MutantResult(Mutant("lost", "", "x"), False, 9, note="no seed"),
        MutantResult(Mutant("moved", "", "y"), False, note="gone", judged=False),
    )
    monkeypatch.setattr("triplicate_simulator.sim_command.violations_without_mutants", lambda kinds: [])
    monkeypatch.setattr("triplicate_simulator.sim_command.hunt_all", lambda mutants, **_: [lost, moved])
    answer = call("mutants")
    assert answer.return_value == 1
    assert "moved not judged: gone" in answer.output
    assert "0 caught, 1 survived, 1 not judged" in answer.output


def test_a_good_range_ends_with_totals_and_code_0() -> None:
    answer = call("run", "--seeds", "1..2", "--jobs", "1")
    assert answer.return_value == 0, answer.output
    assert answer.output.splitlines()[-1] == "2 seeds, 0 with violations"
    for word in ("acknowledged_is_readable", "power_loss", "simulated seconds", "ensemble changes"):
        assert word in answer.output


def test_a_violation_is_shown_and_ends_with_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "triplicate_simulator.runner.scenario.judge", lambda history, checkers: [Verdict("acknowledged_in_order", 1, ["so it is"])]
    )
    answer = call("run", "--seeds", "1", "--jobs", "1")
    assert answer.return_value == 1
    assert "acknowledged_in_order: so it is" in answer.output
    assert answer.output.splitlines()[-1] == "1 seeds, 1 with violations: 1"


def test_a_fault_of_a_workload_is_in_the_totals_too(capsys: pytest.CaptureFixture[str]) -> None:
    summary = Summary()
    summary.add(Outcome(1, "ledgers", "", 1.0, {"acknowledged": 3}, {"cut_off": 2}, [], []))
    show_totals(summary, 1.0)
    assert "cut_off" in capsys.readouterr().out


def test_the_totals_say_how_often_a_bounded_search_gave_up_also_when_it_never_did(capsys: pytest.CaptureFixture[str]) -> None:
    for gave_up in (0, 3):
        summary = Summary()
        verdict = Verdict("registers_are_linearizable", 5, undecided=gave_up)
        summary.add(Outcome(7, "databases", "", 1.0, {}, {}, [verdict], []))
        show_totals(summary, 1.0)
        rows = [line.split() for line in capsys.readouterr().out.splitlines()]
        cells = {row[1]: [cell for cell in row if cell != "\u2502"] for row in rows if len(row) > 1}
        assert cells["registers_are_linearizable"] == ["registers_are_linearizable", "5", str(gave_up)]
        assert cells["copies_are_equal"] == ["copies_are_equal", "0"], "it has no search"


def test_the_finding_that_was_followed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(seed: int, plan: Plan, **_: object) -> ShrunkPlan:
        lost, late = ViolationKind("acknowledged_is_readable"), ViolationKind("progress", "no progress")
        return ShrunkPlan(plan, late, (lost, late), Outcome(1, "ledgers", "", 1.0, {}, {}, [], ["no progress: x"]), 3, True)

    monkeypatch.setattr("triplicate_simulator.sim_command.shrink", found)
    answer = call("shrink", "1", "--out", str(tmp_path / "small.json"))
    assert answer.return_value == 0
    assert "followed: progress (no progress); at first there was also acknowledged_is_readable" in answer.output


def test_a_long_range_that_left_something_out_ends_with_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = Summary()
    monkeypatch.setattr("triplicate_simulator.sim_command.run", lambda seeds, **_: summary)
    answer = call("run", "--seeds", "1..100")
    assert answer.return_value == 1
    assert "left out: fault partition never struck" in answer.output
    assert call("run", "--seeds", "1..99").return_value == 0


@pytest.mark.usefixtures("tiny")
def test_a_failing_plan_is_replayed_and_made_small(tmp_path: Path) -> None:
    path, small = tmp_path / "plan.json", tmp_path / "small.json"
    path.write_text(tiny_plan(entries=20, complains=True).to_json())
    answer = call("replay", "1", "--plan", str(path), "--node", "writer")
    assert answer.return_value == 1
    assert "20 entries were acknowledged" in answer.output
    answer = call("shrink", "1", "--plan", str(path), "--out", str(small))
    assert answer.return_value == 0, answer.output
    assert json.loads(small.read_text())["load"]["entries"] == 6
    assert answer.output.splitlines()[-1] == f"replay it: triplicate sim replay 1 --plan {small}"
    assert call("replay", "1", "--plan", str(small)).return_value == 1


@pytest.mark.usefixtures("tiny")
def test_a_plan_that_does_not_fail_has_nothing_to_shrink(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(tiny_plan(entries=3, duration_s=2.0).to_json())
    answer = call("shrink", "1", "--plan", str(path))
    assert answer.return_value == 1
    assert "shows no violation" in answer.output
