"""The output of `triplicate ledger check --repair`."""

from __future__ import annotations

import pytest

from triplicate.autorecovery import CopiesMade, CopiesOnBookie, LedgerCopies, LedgerRepair, RepairOutcome
from triplicate.cli.data_commands.ledger_check_command import CheckedLedger, _facts, _print

LACKING = LedgerCopies(7, 2, True, (CopiesOnBookie("a", 3), CopiesOnBookie("b", 3, (range(1, 3),))), ())
WHOLE = LedgerCopies(7, 2, True, (CopiesOnBookie("a", 3), CopiesOnBookie("b", 3)), ())
SILENT = LedgerCopies(7, 2, True, (CopiesOnBookie("a", 3), CopiesOnBookie("b", 3, silence="no answer")), ())
BACK, MOVED = CopiesMade("b", "b", 0, 2, 2, 120), CopiesMade("d", "c", 0, 2, 3, 180)


def test_a_repair_shows_the_copies_before_what_was_copied_and_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    repair = LedgerRepair(7, RepairOutcome.REPAIRED, 5, 300, 2, made=(BACK, MOVED))
    checked = CheckedLedger(WHOLE, ("b",), LACKING, repair)
    _print(checked)
    shown = capsys.readouterr().out
    verdicts = [line for line in shown.splitlines() if line.startswith(("ledger 7", "copied", "repaired"))]
    assert verdicts == [
        "ledger 7: 3 entries, closed; copies are missing, damaged or unknown",
        "copied 2 entries (120 B) of the segment 0 to 2 to b, which lacked them",
        "copied 3 entries (180 B) of the segment 0 to 2 to d, in the place of c",
        "repaired",
        "ledger 7: 3 entries, closed; every copy of them is there",
    ]
    facts = _facts(checked)
    assert (facts["complete"], facts["before"]["complete"], facts["repair"]["outcome"]) == (True, False, "repaired")
    assert [(made["target"], made["replaced"], made["entries"]) for made in facts["repair"]["copies"]] == [("b", "b", 2), ("d", "c", 3)]
    assert checked.is_good


def test_a_repair_that_fails_names_the_reason_and_is_not_good(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "entry 1 of ledger 7 has no intact copy: it should be on a, b"
    checked = CheckedLedger(LACKING, ("b",), LACKING, LedgerRepair(7, RepairOutcome.FAILED, reason=reason))
    _print(checked)
    assert f"not repaired, and still marked: {reason}" in capsys.readouterr().out
    assert not checked.is_good
    assert not CheckedLedger(WHOLE, ("b",), LACKING, LedgerRepair(7, RepairOutcome.FAILED, reason=reason)).is_good


def test_a_repair_without_anything_to_repair_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    _print(CheckedLedger(WHOLE, (), WHOLE, None))
    assert "nothing is to be repaired\n" in capsys.readouterr().err
    _print(CheckedLedger(SILENT, (), SILENT, None))
    assert "bookies did not answer, and are registered" in capsys.readouterr().err
