"""Operations and verdicts are those of the fault during whose stage they were."""

from __future__ import annotations

from benchmarks.histories.stages import NO_FAULT, Blame, Cell, Kind, Result, Stages, cells_of


def test_outcomes_are_counted_by_fault_and_kind() -> None:
    stages = Stages()
    stages.count(Kind.KEY_VALUE, Result.ANSWERED)
    for fault in ("killed", "stopped", "killed"):
        stages.begin(fault)
        stages.count(Kind.KEY_VALUE, Result.ANSWERED)
    stages.count(Kind.KEY_VALUE, Result.UNKNOWN)
    stages.count(Kind.STATEMENTS, Result.REFUSED, stage=2)
    cells = cells_of(stages, Blame())
    assert list(cells) == [NO_FAULT, "killed", "stopped"]
    assert cells["killed"][Kind.KEY_VALUE] == Cell(2, 1, 0, "ok")
    assert cells["stopped"][Kind.STATEMENTS] == Cell(0, 0, 1, "")
    assert stages.total((Kind.KEY_VALUE,), Result.ANSWERED, Result.UNKNOWN) == 5


def test_a_fault_with_one_wrong_stage_has_that_verdict() -> None:
    stages = Stages()
    for fault in ("killed", "stopped", "killed"):
        stages.begin(fault)
        for kind in (Kind.KEY_VALUE, Kind.STATEMENTS):
            stages.count(kind, Result.ANSWERED)
    blame = Blame({(3, Kind.KEY_VALUE)}, {(1, Kind.KEY_VALUE), (2, Kind.STATEMENTS)})
    verdicts = {fault: {kind: cell.verdict for kind, cell in cells.items()} for fault, cells in cells_of(stages, blame).items()}
    assert verdicts["killed"][Kind.KEY_VALUE] == "WRONG"
    assert verdicts["killed"][Kind.STATEMENTS] == "ok"
    assert verdicts["stopped"][Kind.KEY_VALUE] == "ok"
    assert verdicts["stopped"][Kind.STATEMENTS] == "UNDECIDED"
