"""Figures per statement: what no stage covers is the rest, and a stage that nothing enters is an error."""

from __future__ import annotations

import pytest

from benchmarks.ledger.processes import CaseFailed
from benchmarks.sql import staged_run
from benchmarks.sql.staged_run import TOTAL, per_statement
from benchmarks.sql.stages import REST


def test_the_rest_is_what_no_stage_covers() -> None:
    before = {"stages": {"socket": 1.0, "log": 2.0}, "cpu_s": 10.0}
    after = {"stages": {"socket": 1.5, "log": 2.25}, "cpu_s": 12.0}
    assert per_statement(before, after, 1000) == pytest.approx({"socket": 500.0, "log": 250.0, REST: 1250.0, TOTAL: 2000.0})


def test_a_stage_that_inserts_do_not_enter_is_an_error_that_names_it() -> None:
    before, after = {"calls": {"socket": 1, "capture": 3}}, {"calls": {"socket": 5, "capture": 3}}
    with pytest.raises(CaseFailed, match="no function of capture was called"):
        staged_run.check_calls(before, after, "insert, 1 client")
    staged_run.check_calls(before, {"calls": {"socket": 5, "capture": 4}}, "insert, 1 client")
