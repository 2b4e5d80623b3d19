"""The table has before, now, their quotient, the target and the verdict, and each failure with its reason."""

from __future__ import annotations

from benchmarks.ledger.ratios import Run, Runs
from benchmarks.sql.report import case_rows, document, missed_lines, stage_rows, target_row
from benchmarks.sql.sampling import FunctionShare
from benchmarks.sql.targets import BEFORE, NOW, POSTGRES, SLOW, TARGETS

RUNS = Runs(
    [
        Run(BEFORE, "insert_64", 1, {"per_s": 1000.0}),
        Run(NOW, "insert_64", 1, {"per_s": 3000.0}),
        Run(POSTGRES, "insert_64", 1, {"per_s": 2500.0}),
        Run(NOW, f"insert_64{SLOW}", 1, {"per_s": 500.0}),
        Run(NOW, "copy", 1, None, "this release refuses COPY"),
    ]
)


def row_of(key: str) -> list[str]:
    return target_row(next(target for target in TARGETS if target.key == key), RUNS)


def test_a_target_row_has_both_states_and_a_verdict() -> None:
    assert row_of("insert_64_vs_before")[1:] == ["1,000", "3,000", "3.00", ">= 4,000 /s", "0.75", "missed by 25 %"]
    assert row_of("insert_64_vs_postgres")[-1] == "met"


def test_missed_targets_are_listed_with_what_was_wanted_and_by_how_much() -> None:
    assert list(missed_lines(RUNS)) == ["- inserts, 64 clients: 4x before: 3,000 /s instead of >= 4,000 /s, missed by 25 %"]
    text = document(RUNS, {}, {}, {})
    assert text.index("## Missed") < text.index("missed by 25 %", text.index("## Missed")) < text.index("## Cases")


def test_targets_of_cases_that_are_no_part_of_the_run_are_left_out() -> None:
    text = document(Runs([Run(NOW, "memory_200", 1, {"mb": 90.0})]), {}, {}, {})
    assert "memory of a leader with 200 working connections" in text
    assert "COPY" not in text
    assert "## Missed" not in text


def test_a_target_that_was_not_run_says_why() -> None:
    assert row_of("copy_rows")[-1] == "not run: copy of now: this release refuses COPY"


def test_a_case_row_has_each_side_and_slower_syncs_have_rows_of_their_own() -> None:
    rows = list(case_rows(RUNS))
    assert rows[0] == ["one-row inserts, 64 clients", "/s", "1,000", "3,000", "3.00", "2,500", "1.20", "-"]
    assert rows[1][0] == "one-row inserts, 64 clients, syncs 2 ms slower"


def test_stages_have_a_row_each_and_a_dash_where_a_load_has_none() -> None:
    assert list(stage_rows({"read": {"socket": 1.5}, "insert": {"socket": 2.0, "log": 3.0}})) == [
        ["socket", "1.50", "2.00"],
        ["log", "-", "3.00"],
    ]


def test_the_document_lists_what_was_not_measured() -> None:
    text = document(RUNS, {"read": {"socket": 1.5}}, {"read": [FunctionShare("wire: decode_message", 2.0, 3.5)]}, {"commit": "abc"})
    assert "| `wire: decode_message` | 2.00 | 3.50 |" in text
    assert "- commit: abc" in text
    assert "- copy of now, round 1: this release refuses COPY" in text
    assert "| stage | read |" in text
